-- Ended jobs among those from ARGV[3] on.
local ended = {}
for a = 3, #ARGV do
  local state = call('HGET', key_of(ARGV[a]), 'state')
  if state and LIST[state] ~= 'open' then ended[#ended + 1] = ARGV[a] end
end
return ended
