-- One job. ARGV: `number` or `id`, value. Returns row, response and history; nothing without the job.
local number = ARGV[3] == 'id' and call('HGET', p .. 'ids', ARGV[4]) or ARGV[3] == 'number' and ARGV[4]
if not number or call('EXISTS', key_of(number)) == 0 then return {} end
local response = call('HMGET', key_of(number), 'response_headers', 'response_body')
return { row(tonumber(number)), response[1], response[2], call('LRANGE', p .. 'history:' .. number, 0, -1) }
