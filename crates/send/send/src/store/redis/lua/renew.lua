-- Extension of leases to ARGV[3] ms from now; then number and token of each. Returns 1 or 0 for each.
local at, said = ARGV[3] == 'inf' and 'inf' or clock() + tonumber(ARGV[3]), {}
for a = 4, #ARGV, 2 do
  local held = call('HGET', key_of(ARGV[a]), 'lease') == ARGV[a + 1]
  if held then call('ZADD', HELD, at, member(ARGV[a])) end
  said[#said + 1] = held and 1 or 0
end
return said
