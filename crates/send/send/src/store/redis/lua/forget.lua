-- Releases jobs of the claim ARGV[3], whose reply was lost; they are certainly unsent.
local packed = call('HGET', p .. 'client:' .. client, 'said:' .. tonumber(ARGV[3]) % 64)
if packed then
  local number, said = cmsgpack.unpack(packed)
  if number == tonumber(ARGV[3]) then
    local now = clock()
    for i, job in ipairs(said[3]) do
      if call('HGET', key_of(job), 'lease') == string.format('%d', said[2][i]) then
        call('HDEL', key_of(job), 'sent_ms', 'last_key')
        give_back(job, now, 'the reply to the claim was lost', '')
        call('ZREM', HELD, member(job))
      end
    end
  end
end
return done()
