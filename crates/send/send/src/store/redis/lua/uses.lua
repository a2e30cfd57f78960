-- Use of keys. ARGV: after, maximum, list. Returns the last number, then key, sent_ms and state of each job with an
-- attempt.
local said, last = { 0 }, 0
for _, name in ipairs(call('ZRANGEBYSCORE', p .. ARGV[5], '(' .. ARGV[3], 'inf', 'LIMIT', 0, ARGV[4])) do
  last = tonumber(name)
  local v = call('HMGET', key_of(last), 'last_key', 'sent_ms', 'state')
  if v[1] and v[2] then for i = 1, 3 do said[#said + 1] = v[i] end end
end
said[1] = last
return said
