-- Reconciliation after a restart of the server, which may have lost records: jobs that the sender does not have are
-- requeued. ARGV: number, token and maybe sent of each job that it has. Returns kinds of changes.
local now, has = clock(), {}
for a = 3, #ARGV, 3 do
  has[member(ARGV[a])] = ARGV[a + 1]
  local v = call('HMGET', key_of(ARGV[a]), 'lease', 'sent_ms')
  -- The mark may be lost as well.
  if ARGV[a + 2] == '1' and v[1] == ARGV[a + 1] and not v[2] then call('HSET', key_of(ARGV[a]), 'sent_ms', now) end
end
for _, name in ipairs(call('ZRANGEBYSCORE', HELD, 'inf', 'inf')) do
  local number = tonumber(name)
  if not has[name] or has[name] ~= call('HGET', key_of(number), 'lease') then
    give_back(number, now, '', 'the server lost the outcome', true)
    call('ZREM', HELD, name)
  end
end
return done()
