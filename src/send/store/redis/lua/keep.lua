-- Another run of the server may have lost what came of jobs: what this sender does not have in hand is queued again, all
-- others keep theirs. ARGV: number and token of each that it has. Says: what happened.
local now, has = clock(), {}
for a = 3, #ARGV, 2 do has[member(ARGV[a])] = ARGV[a + 1] end
for _, name in ipairs(call('ZRANGEBYSCORE', HELD, 'inf', 'inf')) do
  local number = tonumber(name)
  if not has[name] or has[name] ~= call('HGET', key_of(number), 'lease') then
    give_back(number, now, 'the server lost what came of it', 'the server lost what came of it')
    call('ZREM', HELD, name)
  end
end
return done()
