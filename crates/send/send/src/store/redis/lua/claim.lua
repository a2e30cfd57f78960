-- Claim of jobs. ARGV: now, lease_ms (or inf), session_ms, max_bytes, sending, then lane and maximum of each want.
-- Returns: kinds of changes, next time at which a job is due or expires or a session ends, lanes with more jobs,
-- tokens, rows of leased jobs, rows of expired jobs.
local function rows(numbers)
  local found = {}
  for i, number in ipairs(numbers) do found[i] = row(number) end
  return found
end
local function next_time(now)
  local at
  local function sooner(first) if first[2] and (not at or tonumber(first[2]) < at) then at = tonumber(first[2]) end end
  sooner(call('ZRANGE', p .. 'ends', 0, 0, 'WITHSCORES'))
  sooner(call('ZRANGE', p .. 'due', 0, 0, 'WITHSCORES'))
  for _, session in ipairs(call('ZRANGE', p .. 'sessions', 0, 3)) do
    if session ~= client and call('EXISTS', p .. 'leased:' .. session) == 1 then
      sooner({ session, call('ZSCORE', p .. 'sessions', session) })
    end
  end
  return at and string.format('%d', at) or false
end
local before = said_before()
if before then
  return { before[1], next_time(), call('SMEMBERS', p .. 'hints'), before[2], rows(before[3]), rows(before[4]) }
end
local now, server, lease = ARGV[3], clock(), ARGV[4]
local most_bytes, sending = tonumber(ARGV[6]), ARGV[7] == '1'
local ends = lease == 'inf' and 'inf' or string.format('%.0f', server + tonumber(lease))
if not call('ZSCORE', p .. 'sessions', client) then call('ZADD', p .. 'sessions', server + tonumber(ARGV[5]), client) end
take_back(server)
for _, name in ipairs(call('ZRANGEBYSCORE', HELD, '-inf', server, 'LIMIT', 0, MOST_CHORES)) do
  give_back(tonumber(name), now, 'lease expired', 'lease expired')
  call('ZREM', HELD, name)
end
local late = {}
for i, name in ipairs(call('ZRANGEBYSCORE', p .. 'ends', '-inf', now, 'LIMIT', 0, MOST_CHORES)) do
  local number, reason = tonumber(name), 'expired'
  local was = facts(number)
  call('HSET', key_of(number), 'state', 'expired', 'reason', reason, 'changed_ms', now)
  call('HDEL', key_of(number), 'retry_at_ms')
  move(number, was.state, 'expired', was.bytes, was)
  note(number, now, 'expired', reason)
  late[i] = number
end
-- An expired retrying job is not due any more.
flush()
for _, name in ipairs(call('ZRANGEBYSCORE', p .. 'due', '-inf', now, 'LIMIT', 0, MOST_CHORES)) do
  local number = tonumber(name)
  local was = facts(number)
  call('HSET', key_of(number), 'state', 'queued', 'reason', 'retry due', 'changed_ms', now)
  call('HDEL', key_of(number), 'retry_at_ms')
  move(number, 'retrying', 'queued', was.bytes, was)
end
-- Jobs that were just queued may be taken.
flush()
local leases = tonumber(call('HGET', p .. 'meta', 'last_lease') or 0)
local first, bytes, numbers, tokens, found = leases, 0, {}, {}, {}
for want = 8, #ARGV, 2 do
  local hint, most = given(ARGV[want]), tonumber(ARGV[want + 1])
  local line = line_of(hint)
  local places = most > 0 and bytes < most_bytes and call('ZRANGE', line, 0, most - 1) or {}
  local taken = {}
  for _, place in ipairs(places) do
    if bytes >= most_bytes then break end
    local number = number_of(place)
    local key, values = key_of(number), row(number)
    leases = leases + 1
    if values[7] or values[8] or values[9] or values[10] then call('HDEL', key, 'code', 'last_key', 'sent_ms', 'retry_at_ms') end
    values[2], values[3], values[4], values[7], values[10] = 'leased', 'claimed by the sender', now, false, false
    if sending then
      values[8], values[9] = values[15], now
      if values[15] then call('HSET', key, 'last_key', values[15]) end
      call('HSET', key, 'state', 'leased', 'reason', values[3], 'changed_ms', now, 'lease', leases, 'sent_ms', now)
    else
      values[8], values[9] = false, false
      call('HSET', key, 'state', 'leased', 'reason', values[3], 'changed_ms', now, 'lease', leases)
    end
    into(HELD, ends, member(number))
    if values[12] then out_of(p .. 'ends', member(number)) end
    local size = tonumber(values[16])
    count('queued', -1, -size)
    count('leased', 1, size)
    bytes = bytes + size
    taken[#taken + 1] = place
    numbers[#numbers + 1], tokens[#tokens + 1], found[#found + 1] = number, leases, values
  end
  for _, place in ipairs(taken) do out_of(line, place) end
  -- The next want may be of the same lane.
  flush()
  if hint then hints[hint] = true end
end
if leases ~= first then call('HSET', p .. 'meta', 'last_lease', string.format('%d', leases)) end
local what = done()
keep_said({ what, tokens, numbers, late })
return { what, next_time(), call('SMEMBERS', p .. 'hints'), tokens, found, rows(late) }
