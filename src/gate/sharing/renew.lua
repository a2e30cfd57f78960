-- A gate says what it uses of limits and what it could use, and hears what is its own from then on.
-- KEYS: what all keys begin with. ARGV: gate, number, run, lease_ms, whether it leaves, usual, seen and the number of the
-- last question that it heard the answer of; then claim, holds and wants of each.
-- Says: 0 if a later question came first; else gates, usual, seen, whether it was not known, whether there is more,
-- whether all that may be used is known and fits, then a list of claims and portions (-1: no claim any more).
-- Portions are in 65,536ths. src/decide/portion/table.rs says the same in Rust; a test holds both together.
local WHOLE, MOST, PAGE, DAY = 65536, 1024, 128, 86400
local p, me, number, run = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
local lease, leaves = tonumber(ARGV[4]), ARGV[5] == '1'
local holds, seen, heard = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local call, floor = redis.call, math.floor
local meta, gates, claims, gone = p .. 'meta', p .. 'gates', p .. 'claims', p .. 'gone'
local function gate_key(gate) return p .. 'gate:' .. gate end
local function claim_key(claim) return p .. 'claim:' .. claim end
-- With 0 added, since Lua writes a zero that was made negative as -0.
local function int(number) return string.format('%.0f', number + 0) end

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local v = call('HMGET', meta, 'run', 'heard', 'lease', 'settled', 'last')
local term, settled, last = math.max(lease, tonumber(v[3] or 0)), tonumber(v[4] or 0), tonumber(v[5] or 0)
-- Another run of the server may know less than was said; after a silence many leases are over at once. Then whoever
-- lives says what it uses before anybody is given more.
local silent = now - tonumber(v[2] or 0) > term / 2 and call('EXISTS', gates) == 1
if v[1] ~= run or silent then settled = now + term end

local known = call('HMGET', gate_key(me), 'number', 'joined')
if known[1] and number <= tonumber(known[1]) then return 0 end

local function forget(gate)
  for _, claim in ipairs(call('ZRANGE', claims, 0, -1)) do
    local of = call('HMGET', claim_key(claim), 'h:' .. gate, 'w:' .. gate)
    if of[1] then
      call('HINCRBY', claim_key(claim), 'held', int(-tonumber(of[1])))
      call('HINCRBY', claim_key(claim), 'wanted', int(-tonumber(of[2])))
      call('HDEL', claim_key(claim), 'h:' .. gate, 'w:' .. gate)
    end
  end
  call('DEL', gate_key(gate))
  call('ZREM', gates, gate)
end

if now >= settled then
  -- Each looks at all claims, and the server does nothing else meanwhile.
  for _, gate in ipairs(call('ZRANGEBYSCORE', gates, '-inf', now, 'LIMIT', 0, 8)) do
    if gate ~= me then forget(gate) end
  end
end
local function keep()
  call('HSET', meta, 'run', run, 'heard', int(now), 'lease', int(term), 'settled', int(settled), 'last', int(last))
  for _, key in ipairs({ meta, gates, claims, gone, gate_key(me) }) do call('EXPIRE', key, DAY) end
end
if leaves then
  forget(me)
  keep()
  return 0
end

-- As long as it has not heard so.
local began = tonumber(known[2] or number)
local joined = not known[1] or heard < began
if joined then seen = 0 end
call('ZADD', gates, int(now + lease), me)
-- Of each gate what it may be using of what is no claim.
local all, usual_of, sum = call('ZRANGE', gates, 0, -1), {}, 0
for _, gate in ipairs(all) do
  usual_of[gate] = gate == me and holds or tonumber(call('HGET', gate_key(gate), 'usual') or 0)
  sum = sum + usual_of[gate]
end
-- As long as not all have been heard, nobody knows.
local even, fits = floor(WHOLE / #all), now >= settled

local function grant(its, due, others)
  if its >= due then return due end
  local free = now < settled and 0 or math.max(WHOLE - others, 0)
  return math.max(its, math.min(due, free))
end

local told, says = {}, {}
local function say(claim, portion)
  told[claim] = true
  says[#says + 1] = claim
  says[#says + 1] = portion
end

-- A claim that is there: `its` is what the gate may be using of it; without `wants` it wants what it wanted.
local function deal(claim, its, wants)
  local key = claim_key(claim)
  local of = call('HMGET', key, 'held', 'wanted', 'h:' .. me, 'w:' .. me)
  local before, wanted_before = tonumber(of[3] or 0), tonumber(of[4] or 0)
  if not its then its = math.max(holds, before) end
  local has_said = wants
  wants = wants or wanted_before
  local held, wanted = tonumber(of[1]) + its - before, tonumber(of[2]) + wants - wanted_before
  local is_small, due = wanted * 2 <= even, even
  if not has_said then
    -- What it wants is not known: it keeps what it has until it says so.
    due = holds
  elseif not is_small then
    due = wanted <= WHOLE and wants + floor((WHOLE - wanted) / #all) or floor(wants * WHOLE / wanted)
  end
  fits = fits and held <= WHOLE
  local portion = grant(its, due, held - its)
  local may = math.max(its, portion)
  call('HSET', key, 'held', int(held + may - its), 'wanted', int(wanted), 'h:' .. me, int(may), 'w:' .. me, int(wants))
  call('EXPIRE', key, DAY)
  local over = is_small and now >= settled
  for i = 1, over and #all or 0 do
    local gate = all[i]
    over = over and tonumber(call('HGET', key, 'h:' .. gate) or 0) <= usual_of[gate]
  end
  if over then
    last = last + 1
    call('DEL', key)
    call('ZREM', claims, claim)
    call('ZADD', gone, int(last), claim)
    portion = -1
  end
  say(claim, portion)
end

for a = 9, #ARGV, 3 do
  local claim, its, wants = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local key = claim_key(claim)
  local is_there = call('ZSCORE', claims, claim) and call('EXISTS', key) == 1
  -- As long as not all have been heard, whoever says that it is one is right.
  local is_one = wants > its or now < settled and its ~= holds
  if not is_there and is_one and call('ZCARD', claims) < MOST then
    last = last + 1
    call('ZADD', claims, int(last), claim)
    call('ZREM', gone, claim)
    call('DEL', key)
    call('HSET', key, 'held', int(sum), 'wanted', '0')
    for _, gate in ipairs(all) do call('HSET', key, 'h:' .. gate, int(usual_of[gate]), 'w:' .. gate, '0') end
    is_there = true
  end
  if is_there then deal(claim, its, wants) else say(claim, -1) end
end

-- Beginnings and ends that it does not know of, in their order.
local up_to = last
local function after(list)
  local page = call('ZRANGEBYSCORE', list, '(' .. int(seen), 'inf', 'WITHSCORES', 'LIMIT', 0, PAGE)
  if #page == 2 * PAGE then up_to = math.min(up_to, tonumber(page[#page])) end
  return page
end
local begun, ended = after(claims), joined and {} or after(gone)
local before = last
for i = 1, #begun, 2 do
  local claim = begun[i]
  if tonumber(begun[i + 1]) <= up_to and not told[claim] then
    if call('EXISTS', claim_key(claim)) == 1 then
      deal(claim)
    else
      -- A server that throws keys away.
      call('ZREM', claims, claim)
      say(claim, -1)
    end
  end
end
for i = 1, #ended, 2 do
  if tonumber(ended[i + 1]) <= up_to and not told[ended[i]] then say(ended[i], -1) end
end
local more = up_to < before

local usual = holds
if not more then usual = grant(holds, even, sum - holds) end
fits = fits and sum <= WHOLE and not more
local may = int(math.max(holds, usual))
call('HSET', gate_key(me), 'number', int(number), 'joined', int(began), 'usual', may, 'seen', int(seen))
if call('ZCARD', gone) > PAGE then
  local least = up_to
  for _, gate in ipairs(all) do least = math.min(least, tonumber(call('HGET', gate_key(gate), 'seen') or 0)) end
  call('ZREMRANGEBYSCORE', gone, '-inf', int(least))
end
keep()
return { #all, usual, up_to, joined and 1 or 0, more and 1 or 0, fits and 1 or 0, says }
