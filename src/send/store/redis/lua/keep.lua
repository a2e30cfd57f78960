-- Another run of the server may have lost what came of jobs: what this sender does not have in hand is queued again, all
-- others keep theirs. ARGV: number and token of each that it has, and whether it may be sent. Says: what happened.
local now, has = clock(), {}
for a = 3, #ARGV, 3 do
  has[member(ARGV[a])] = ARGV[a + 1]
  local v = call('HMGET', key_of(ARGV[a]), 'lease', 'sent_ms')
  -- The mark may be lost, too.
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
