-- Jobs by number. ARGV: after, maximum, then lists. Returns rows.
local most, numbers, found = tonumber(ARGV[4]), {}, {}
for a = 5, #ARGV do
  for _, name in ipairs(call('ZRANGEBYSCORE', p .. ARGV[a], '(' .. ARGV[3], 'inf', 'LIMIT', 0, most)) do
    numbers[#numbers + 1] = tonumber(name)
  end
end
table.sort(numbers)
for i = 1, math.min(most, #numbers) do found[i] = row(numbers[i]) end
return found
