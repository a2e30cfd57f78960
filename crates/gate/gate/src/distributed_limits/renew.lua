-- Renews a gateway's lease: takes what it uses of each limit and its demand, and returns its allocations from then on.
-- KEYS: prefix of all keys. ARGV: gateway, request number, server run, lease_ms, whether it leaves, default fraction, last
-- change seen and number of the last request whose reply it received; then allocation, in use and demand of each.
-- Returns 0 if a later request came first; else gateways, default fraction, last change, whether the gateway is new, whether
-- there are more changes, whether the sum of all that may be in use is known and fits, and a list of allocations and
-- fractions (-1: the allocation has ended).
-- Fractions are in 65,536ths. src/decide/ratelimit/split/tests/model.rs is the same in Rust; a test compares both.
local WHOLE, MAX_ALLOCATIONS, PAGE, DAY_S = 65536, 1024, 128, 86400
local prefix, gateway, number, run = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
local lease, leaves = tonumber(ARGV[4]), ARGV[5] == '1'
local in_use, seen, last_reply = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local call, floor = redis.call, math.floor
local meta, gates, allocations, ended_list = prefix .. 'meta', prefix .. 'gates', prefix .. 'allocations', prefix .. 'gone'
local function gate_key(gate) return prefix .. 'gate:' .. gate end
local function allocation_key(allocation) return prefix .. 'allocation:' .. allocation end
-- Lua writes a negated zero as -0, hence + 0.
local function int(number) return string.format('%.0f', number + 0) end

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local state = call('HMGET', meta, 'run', 'heard', 'lease', 'settled', 'last')
local max_lease = math.max(lease, tonumber(state[3] or 0))
local settled, last = tonumber(state[4] or 0), tonumber(state[5] or 0)
-- Another run of the server may have lost data; after a silence many leases expire at once. In both cases all gateways
-- report what they use before any allocation grows.
local silent = now - tonumber(state[2] or 0) > max_lease / 2 and call('EXISTS', gates) == 1
if state[1] ~= run or silent then settled = now + max_lease end

local known = call('HMGET', gate_key(gateway), 'number', 'joined')
if known[1] and number <= tonumber(known[1]) then return 0 end

local function remove_gate(gate)
  for _, allocation in ipairs(call('ZRANGE', allocations, 0, -1)) do
    local row = call('HMGET', allocation_key(allocation), 'h:' .. gate, 'w:' .. gate)
    if row[1] then
      call('HINCRBY', allocation_key(allocation), 'held', int(-tonumber(row[1])))
      call('HINCRBY', allocation_key(allocation), 'wanted', int(-tonumber(row[2])))
      call('HDEL', allocation_key(allocation), 'h:' .. gate, 'w:' .. gate)
    end
  end
  call('DEL', gate_key(gate))
  call('ZREM', gates, gate)
end

if now >= settled then
  -- At most 8 per call, since each takes a scan of all allocations, which blocks the server.
  for _, gate in ipairs(call('ZRANGEBYSCORE', gates, '-inf', now, 'LIMIT', 0, 8)) do
    if gate ~= gateway then remove_gate(gate) end
  end
end
local function save_state()
  call('HSET', meta, 'run', run, 'heard', int(now), 'lease', int(max_lease), 'settled', int(settled), 'last', int(last))
  for _, key in ipairs({ meta, gates, allocations, ended_list, gate_key(gateway) }) do call('EXPIRE', key, DAY_S) end
end
if leaves then
  remove_gate(gateway)
  save_state()
  return 0
end

-- New until it has received a reply.
local began = tonumber(known[2] or number)
local joined = not known[1] or last_reply < began
if joined then seen = 0 end
call('ZADD', gates, int(now + lease), gateway)
-- Default fraction that each gateway may be using, of all limits without an allocation.
local all, default_of, sum = call('ZRANGE', gates, 0, -1), {}, 0
for _, gate in ipairs(all) do
  default_of[gate] = gate == gateway and in_use or tonumber(call('HGET', gate_key(gate), 'default') or 0)
  sum = sum + default_of[gate]
end
-- Unknown until all gateways have reported.
local even_part, fits = floor(WHOLE / #all), now >= settled

local function grant(used, target, others)
  if used >= target then return target end
  local free = now < settled and 0 or math.max(WHOLE - others, 0)
  return math.max(used, math.min(target, free))
end

local listed, reply = {}, {}
local function list_allocation(allocation, fraction)
  listed[allocation] = true
  reply[#reply + 1] = allocation
  reply[#reply + 1] = fraction
end

-- Renews an existing allocation: `used` is what the gateway may be using of it; without `demand` its demand is unchanged.
local function renew(allocation, used, demand)
  local key = allocation_key(allocation)
  local row = call('HMGET', key, 'held', 'wanted', 'h:' .. gateway, 'w:' .. gateway)
  local before, demand_before = tonumber(row[3] or 0), tonumber(row[4] or 0)
  if not used then used = math.max(in_use, before) end
  local has_demand = demand
  demand = demand or demand_before
  local held, total_demand = tonumber(row[1]) + used - before, tonumber(row[2]) + demand - demand_before
  local is_small, target = total_demand * 2 <= even_part, even_part
  if not has_demand then
    -- Its demand is unknown: it keeps what it has until it reports one.
    target = in_use
  elseif not is_small then
    local spare = WHOLE - total_demand
    target = spare >= 0 and demand + floor(spare / #all) or floor(demand * WHOLE / total_demand)
  end
  fits = fits and held <= WHOLE
  local fraction = grant(used, target, held - used)
  local may = math.max(used, fraction)
  call('HSET', key, 'held', int(held + may - used), 'wanted', int(total_demand))
  call('HSET', key, 'h:' .. gateway, int(may), 'w:' .. gateway, int(demand))
  call('EXPIRE', key, DAY_S)
  local over = is_small and now >= settled
  for i = 1, over and #all or 0 do
    local gate = all[i]
    over = over and tonumber(call('HGET', key, 'h:' .. gate) or 0) <= default_of[gate]
  end
  if over then
    last = last + 1
    call('DEL', key)
    call('ZREM', allocations, allocation)
    call('ZADD', ended_list, int(last), allocation)
    fraction = -1
  end
  list_allocation(allocation, fraction)
end

for a = 9, #ARGV, 3 do
  local allocation, used, demand = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local key = allocation_key(allocation)
  local exists = call('ZSCORE', allocations, allocation) and call('EXISTS', key) == 1
  -- Until all gateways have reported, a gateway that reports an allocation is right.
  local is_wanted = demand > used or now < settled and used ~= in_use
  if not exists and is_wanted and call('ZCARD', allocations) < MAX_ALLOCATIONS then
    last = last + 1
    call('ZADD', allocations, int(last), allocation)
    call('ZREM', ended_list, allocation)
    call('DEL', key)
    call('HSET', key, 'held', int(sum), 'wanted', '0')
    for _, gate in ipairs(all) do call('HSET', key, 'h:' .. gate, int(default_of[gate]), 'w:' .. gate, '0') end
    exists = true
  end
  if exists then renew(allocation, used, demand) else list_allocation(allocation, -1) end
end

-- Allocations begun and ended since the last change that it has seen, in order.
local up_to = last
local function after(list)
  local page = call('ZRANGEBYSCORE', list, '(' .. int(seen), 'inf', 'WITHSCORES', 'LIMIT', 0, PAGE)
  if #page == 2 * PAGE then up_to = math.min(up_to, tonumber(page[#page])) end
  return page
end
local begun, ended = after(allocations), joined and {} or after(ended_list)
local before = last
for i = 1, #begun, 2 do
  local allocation = begun[i]
  if tonumber(begun[i + 1]) <= up_to and not listed[allocation] then
    if call('EXISTS', allocation_key(allocation)) == 1 then
      renew(allocation)
    else
      -- The server has evicted the key.
      call('ZREM', allocations, allocation)
      list_allocation(allocation, -1)
    end
  end
end
for i = 1, #ended, 2 do
  if tonumber(ended[i + 1]) <= up_to and not listed[ended[i]] then list_allocation(ended[i], -1) end
end
local more = up_to < before

local default = in_use
if not more then default = grant(in_use, even_part, sum - in_use) end
fits = fits and sum <= WHOLE and not more
local may = int(math.max(in_use, default))
call('HSET', gate_key(gateway), 'number', int(number), 'joined', int(began), 'default', may, 'seen', int(seen))
if call('ZCARD', ended_list) > PAGE then
  local least = up_to
  for _, gate in ipairs(all) do least = math.min(least, tonumber(call('HGET', gate_key(gate), 'seen') or 0)) end
  call('ZREMRANGEBYSCORE', ended_list, '-inf', int(least))
end
save_state()
return { #all, default, up_to, joined and 1 or 0, more and 1 or 0, fits and 1 or 0, reply }
