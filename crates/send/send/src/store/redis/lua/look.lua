-- Overview of the queue. Returns: tally, lanes with their jobs, keys with notes and owners, senders.
local said = { call('HGETALL', p .. 'tally'), {}, {}, {} }
local any = call('ZCARD', p .. 'ready')
if any > 0 then said[2] = { '', any } end
for _, hint in ipairs(call('SMEMBERS', p .. 'hints')) do
  said[2][#said[2] + 1] = '=' .. hint
  said[2][#said[2] + 1] = call('ZCARD', line_of(hint))
end
for _, name in ipairs(call('SMEMBERS', p .. 'keys')) do
  local v = call('HMGET', p .. 'key:' .. name, 'note', 'owner')
  for _, word in ipairs({ name, v[1] or '', v[2] or '' }) do said[3][#said[3] + 1] = word end
end
for _, session in ipairs(call('ZRANGEBYSCORE', p .. 'sessions', '(' .. clock(), 'inf')) do
  said[4][#said[4] + 1] = session
  said[4][#said[4] + 1] = call('HGET', p .. 'session:' .. session, 'who') or ''
end
return said
