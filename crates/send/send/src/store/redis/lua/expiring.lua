-- Number of jobs that expire before ARGV[3].
return call('ZCOUNT', p .. 'ends', '-inf', '(' .. ARGV[3])
