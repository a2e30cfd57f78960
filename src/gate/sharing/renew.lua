-- Renews a gate's allocations: takes its use and its demand of limits, returns its fractions from then on.
-- KEYS: prefix of all keys. ARGV: gate, request number, server run, lease in ms, whether the gate leaves, default
-- fraction in use, last change seen, number of the last request whose reply came; then ID, use and demand of each
-- allocation.
-- Returns 0 if a later request came first or the gate leaves; else the number of gates, the default fraction, the last
-- change included, whether the gate joined, whether there is more, whether all that may be in use is known and fits,
-- and a list of IDs and fractions (-1: the default again).
-- Fractions are in 65,536ths. src/decide/portion/table.rs is the same in Rust, with the reasons; a test compares both.
local WHOLE_PARTS, MAX_ROWS, PAGE, DAY = 65536, 1024, 128, 86400
local p, me, number, run = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
local lease, is_leaving = tonumber(ARGV[4]), ARGV[5] == '1'
local default_in_use, seen, last_reply = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local call, floor = redis.call, math.floor
local meta, gates, rows, ends = p .. 'meta', p .. 'gates', p .. 'claims', p .. 'gone'
local function gate_key(gate) return p .. 'gate:' .. gate end
local function row_key(id) return p .. 'claim:' .. id end
-- Adds 0, since Lua formats a negated zero as -0.
local function int(number) return string.format('%.0f', number + 0) end

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local v = call('HMGET', meta, 'run', 'heard', 'lease', 'settled', 'last')
local longest_lease, settled, last = math.max(lease, tonumber(v[3] or 0)), tonumber(v[4] or 0), tonumber(v[5] or 0)
-- Another run of the server may have lost reports; after a silence many leases expire at once. Then no gate gets more
-- than it has until all living gates have reported their use: for one lease.
local silent = now - tonumber(v[2] or 0) > longest_lease / 2 and call('EXISTS', gates) == 1
if v[1] ~= run or silent then settled = now + longest_lease end

local known = call('HMGET', gate_key(me), 'number', 'joined')
if known[1] and number <= tonumber(known[1]) then return 0 end

local function forget(gate)
  for _, id in ipairs(call('ZRANGE', rows, 0, -1)) do
    local row = call('HMGET', row_key(id), 'h:' .. gate, 'w:' .. gate)
    if row[1] then
      call('HINCRBY', row_key(id), 'held', int(-tonumber(row[1])))
      call('HINCRBY', row_key(id), 'wanted', int(-tonumber(row[2])))
      call('HDEL', row_key(id), 'h:' .. gate, 'w:' .. gate)
    end
  end
  call('DEL', gate_key(gate))
  call('ZREM', gates, gate)
end

if now >= settled then
  -- At most 8 per request: forgetting a gate reads all rows, and blocks the server meanwhile.
  for _, gate in ipairs(call('ZRANGEBYSCORE', gates, '-inf', now, 'LIMIT', 0, 8)) do
    if gate ~= me then forget(gate) end
  end
end
local function store()
  call('HSET', meta, 'run', run, 'heard', int(now), 'lease', int(longest_lease))
  call('HSET', meta, 'settled', int(settled), 'last', int(last))
  for _, key in ipairs({ meta, gates, rows, ends, gate_key(me) }) do call('EXPIRE', key, DAY) end
end
if is_leaving then
  forget(me)
  store()
  return 0
end

-- A gate counts as new until it confirms a reply to its first request or a later one.
local first_number = tonumber(known[2] or number)
local joined = not known[1] or last_reply < first_number
if joined then seen = 0 end
call('ZADD', gates, int(now + lease), me)
-- Default fraction that each gate may be using.
local all, default_of, sum = call('ZRANGE', gates, 0, -1), {}, 0
for _, gate in ipairs(all) do
  default_of[gate] = gate == me and default_in_use or tonumber(call('HGET', gate_key(gate), 'usual') or 0)
  sum = sum + default_of[gate]
end
-- Before the table is settled the sum is unknown.
local even, fits = floor(WHOLE_PARTS / #all), now >= settled

local function grant(in_use, due, others)
  if in_use >= due then return due end
  local free = now < settled and 0 or math.max(WHOLE_PARTS - others, 0)
  return math.max(in_use, math.min(due, free))
end

local listed, allocations = {}, {}
local function add(id, parts)
  listed[id] = true
  allocations[#allocations + 1] = id
  allocations[#allocations + 1] = parts
end

-- Allocates parts of a row; ends the row if the defaults suffice. `in_use`: what the gate may be using of it; without
-- `demand` its last one counts.
local function allocate(id, in_use, demand)
  local key = row_key(id)
  local row = call('HMGET', key, 'held', 'wanted', 'h:' .. me, 'w:' .. me)
  local in_use_before, demand_before = tonumber(row[3] or 0), tonumber(row[4] or 0)
  if not in_use then in_use = math.max(default_in_use, in_use_before) end
  local is_reported = demand
  demand = demand or demand_before
  local total_in_use = tonumber(row[1]) + in_use - in_use_before
  local total_demand = tonumber(row[2]) + demand - demand_before
  local is_small, due = total_demand * 2 <= even, even
  if not is_reported then
    -- Unknown demand: the gate keeps what it has until it reports it.
    due = default_in_use
  elseif not is_small and total_demand <= WHOLE_PARTS then
    due = demand + floor((WHOLE_PARTS - total_demand) / #all)
  elseif not is_small then
    due = floor(demand * WHOLE_PARTS / total_demand)
  end
  fits = fits and total_in_use <= WHOLE_PARTS
  local parts = grant(in_use, due, total_in_use - in_use)
  local may_use = math.max(in_use, parts)
  call('HSET', key, 'held', int(total_in_use + may_use - in_use), 'wanted', int(total_demand))
  call('HSET', key, 'h:' .. me, int(may_use), 'w:' .. me, int(demand))
  call('EXPIRE', key, DAY)
  local ends_now = is_small and now >= settled
  for i = 1, ends_now and #all or 0 do
    local gate = all[i]
    ends_now = ends_now and tonumber(call('HGET', key, 'h:' .. gate) or 0) <= default_of[gate]
  end
  if ends_now then
    last = last + 1
    call('DEL', key)
    call('ZREM', rows, id)
    call('ZADD', ends, int(last), id)
    parts = -1
  end
  add(id, parts)
end

for a = 9, #ARGV, 3 do
  local id, in_use, demand = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local key = row_key(id)
  local is_there = call('ZSCORE', rows, id) and call('EXISTS', key) == 1
  -- Before the table is settled it may have forgotten the row: a gate that uses something else than its default proves
  -- that there was one.
  local is_needed = demand > in_use or now < settled and in_use ~= default_in_use
  if not is_there and is_needed and call('ZCARD', rows) < MAX_ROWS then
    last = last + 1
    call('ZADD', rows, int(last), id)
    call('ZREM', ends, id)
    call('DEL', key)
    call('HSET', key, 'held', int(sum), 'wanted', '0')
    for _, gate in ipairs(all) do call('HSET', key, 'h:' .. gate, int(default_of[gate]), 'w:' .. gate, '0') end
    is_there = true
  end
  if is_there then allocate(id, in_use, demand) else add(id, -1) end
end

-- Rows that began and ended after the last change seen, in their order, up to a page of each.
local up_to = last
local function after(list)
  local page = call('ZRANGEBYSCORE', list, '(' .. int(seen), 'inf', 'WITHSCORES', 'LIMIT', 0, PAGE)
  if #page == 2 * PAGE then up_to = math.min(up_to, tonumber(page[#page])) end
  return page
end
local begun, ended = after(rows), joined and {} or after(ends)
local last_before = last
for i = 1, #begun, 2 do
  local id = begun[i]
  if tonumber(begun[i + 1]) <= up_to and not listed[id] then
    if call('EXISTS', row_key(id)) == 1 then
      allocate(id)
    else
      -- The server evicted the row.
      call('ZREM', rows, id)
      add(id, -1)
    end
  end
end
for i = 1, #ended, 2 do
  if tonumber(ended[i + 1]) <= up_to and not listed[ended[i]] then add(ended[i], -1) end
end
local has_more = up_to < last_before

local default = default_in_use
if not has_more then default = grant(default_in_use, even, sum - default_in_use) end
fits = fits and sum <= WHOLE_PARTS and not has_more
local may_use = int(math.max(default_in_use, default))
call('HSET', gate_key(me), 'number', int(number), 'joined', int(first_number), 'usual', may_use, 'seen', int(seen))
if call('ZCARD', ends) > PAGE then
  local seen_by_all = up_to
  for _, gate in ipairs(all) do
    seen_by_all = math.min(seen_by_all, tonumber(call('HGET', gate_key(gate), 'seen') or 0))
  end
  call('ZREMRANGEBYSCORE', ends, '-inf', int(seen_by_all))
end
store()
return { #all, default, up_to, joined and 1 or 0, has_more and 1 or 0, fits and 1 or 0, allocations }
