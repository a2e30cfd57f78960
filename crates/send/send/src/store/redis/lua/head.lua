-- Shared by all scripts. KEYS[1] is the prefix of the queue, ARGV[1] the client, ARGV[2] the number of the call.
local p, client, seq = KEYS[1], ARGV[1], tonumber(ARGV[2])
local call = redis.call
local HELD = p .. 'leased:' .. client
local MOST_CHORES, MOST_EVENTS = 1000, 20
-- List of a job by its state; lists change less often than states.
local LIST = { queued = 'open', leased = 'open', retrying = 'open', done = 'done', dead_lettered = 'failed', expired = 'failed' }
local FIELDS = { 'id', 'state', 'reason', 'changed_ms', 'attempts', 'maybe_sent', 'code', 'last_key', 'sent_ms', 'retry_at_ms',
  'created_ms', 'expires_ms', 'priority', 'weight', 'pinned_key', 'bytes', 'method', 'url', 'headers',
  'idempotency_key', 'body', 'templates', 'rank' }

-- Server time in milliseconds since 1970, the only clock of the queue.
local function clock()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Numbers in sorted sets have a fixed width, so that members of one score are in order.
local function member(number) return string.format('%016d', number) end
local function key_of(number) return p .. 'job:' .. string.format('%d', number) end
local function number_of(place) return tonumber(string.sub(place, -16)) end
-- Optional texts begin with '='.
local function given(word) return word ~= '' and string.sub(word, 2) or false end

-- Reply to a call that is repeated after a lost connection; it is executed once.
local slot = 'said:' .. seq % 64
local function said_before()
  local packed = call('HGET', p .. 'client:' .. client, slot)
  if not packed then return end
  local number, said = cmsgpack.unpack(packed)
  if number == seq then return said end
end

local function keep_said(said)
  local me = p .. 'client:' .. client
  call('HSET', me, slot, cmsgpack.pack(seq, said))
  call('EXPIRE', me, 86400)
  return said
end

local function row(number)
  local values = call('HMGET', key_of(number), unpack(FIELDS))
  values[#FIELDS + 1] = number
  return values
end

local function note(number, at, state, reason, key, sent, code)
  local event = { at = tonumber(at), state = state, reason = reason }
  if sent then event.key, event.sent, event.code = key or nil, tonumber(sent), tonumber(code or nil) end
  local events = p .. 'history:' .. string.format('%d', number)
  if call('RPUSH', events, cjson.encode(event)) > MOST_EVENTS then call('LTRIM', events, -MOST_EVENTS, -1) end
end

local tally, lines, hints, changed, arrived = {}, {}, {}, false, false
local removed, added = {}, {}

-- Members are added and removed together: single calls would cost more than the work.
local function out_of(set, name)
  local names = removed[set]
  if not names then names = {}; removed[set] = names end
  names[#names + 1] = name
end

local function into(set, score, name)
  local names = added[set]
  if not names then names = {}; added[set] = names end
  names[#names + 1] = score
  names[#names + 1] = name
end

-- Removals first: no member is added and removed in one step without a flush between.
local function flush()
  for set, names in pairs(removed) do
    for from = 1, #names, 1000 do call('ZREM', set, unpack(names, from, math.min(from + 999, #names))) end
  end
  for set, names in pairs(added) do
    for from = 1, #names, 1000 do call('ZADD', set, unpack(names, from, math.min(from + 999, #names))) end
  end
  removed, added = {}, {}
end

local function count(state, jobs, bytes)
  local of = tally[state]
  if not of then of = { 0, 0 }; tally[state] = of end
  of[1], of[2] = of[1] + jobs, of[2] + bytes
end

local function line_of(hint) return hint and p .. 'ready:' .. hint or p .. 'ready' end

-- Moves a job between the lists of two states; `was` has hint (its lane), priority, rank and expires. false: no state.
local function move(number, from, to, bytes, was)
  local name = member(number)
  local list, next_list = LIST[from], LIST[to]
  if list ~= next_list then
    if list then out_of(p .. list, name) end
    if next_list then into(p .. next_list, number, name) end
  end
  if from == 'queued' then
    out_of(line_of(was.hint), (was.rank or '') .. name)
    if was.hint then hints[was.hint] = true end
  elseif from == 'retrying' then
    out_of(p .. 'due', name)
  end
  local could, can = from == 'queued' or from == 'retrying', to == 'queued' or to == 'retrying'
  if was.expires then
    if can then call('ZADD', p .. 'ends', was.expires, name) elseif could then call('ZREM', p .. 'ends', name) end
  end
  if to == 'queued' then
    local line = line_of(was.hint)
    into(line, -was.priority, (was.rank or '') .. name)
    if was.hint then hints[was.hint] = true end
    lines[line], arrived = (lines[line] or 0) + 1, true
  end
  if from then count(from, -1, -bytes) end
  if to then count(to, 1, bytes) end
end

-- Fields for `move`, and state, size, attempts, sent_ms, lease, key.
local function facts(number)
  local v = call('HMGET', key_of(number), 'state', 'bytes', 'lane', 'priority', 'rank', 'expires_ms', 'attempts',
    'sent_ms', 'lease', 'last_key')
  if not v[1] then return end
  return { state = v[1], bytes = tonumber(v[2]), hint = v[3], priority = tonumber(v[4]), rank = v[5], expires = v[6],
    attempts = tonumber(v[7]), sent = v[8], lease = v[9], key = v[10] }
end

-- Requeues a job whose outcome is unknown. With doubt, a missing mark does not prove that it was not sent. Returns
-- whether it may have been sent.
local function give_back(number, at, unsent, sent, doubt)
  local was = facts(number)
  if not was or was.state ~= 'leased' then return false end
  local key, may = key_of(number), (was.sent or doubt) and true or false
  local reason = may and sent or unsent
  call('HSET', key, 'state', 'queued', 'reason', reason, 'changed_ms', at)
  call('HDEL', key, 'lease')
  if may then call('HSET', key, 'maybe_sent', 1, 'attempts', was.attempts + 1, 'sent_ms', was.sent or at) end
  move(number, 'leased', 'queued', was.bytes, was)
  note(number, at, 'queued', reason)
  return may
end

-- Requeues jobs of senders whose sessions have expired. Returns their number, and that of those that may have been
-- sent.
local function take_back(now)
  local jobs, sent = 0, 0
  local over = call('ZRANGEBYSCORE', p .. 'sessions', '-inf', now, 'WITHSCORES')
  local settled = over[1] and tonumber(call('HGET', p .. 'meta', 'settled_ms') or 0)
  for i = 1, #over, 2 do
    local session = over[i]
    -- No heartbeat in this run of the server: its last marks may be lost.
    local doubt = tonumber(over[i + 1]) <= settled
    if session ~= client then
      local held = p .. 'leased:' .. session
      local left = call('ZRANGE', held, 0, MOST_CHORES - 1)
      for _, name in ipairs(left) do
        if give_back(tonumber(name), now, 'the sender ended before sending it',
          'the sender ended before it recorded the outcome', doubt) then sent = sent + 1 end
        jobs = jobs + 1
        call('ZREM', held, name)
      end
      if #left < MOST_CHORES then
        call('ZREM', p .. 'sessions', session)
        call('DEL', p .. 'session:' .. session)
      end
    end
  end
  return jobs, sent
end

-- Writes the tally and notifies. Returns kinds of changes: 1 any change, 2 jobs were queued.
local function done()
  flush()
  for hint in pairs(hints) do
    call(call('ZCARD', line_of(hint)) == 0 and 'SREM' or 'SADD', p .. 'hints', hint)
  end
  for state, of in pairs(tally) do
    if of[1] ~= 0 then call('HINCRBY', p .. 'tally', state .. ':jobs', of[1]); changed = true end
    if of[2] ~= 0 then call('HINCRBY', p .. 'tally', state .. ':bytes', string.format('%d', of[2])); changed = true end
  end
  local wakes = false
  for line, came in pairs(lines) do
    -- Senders wait only for empty lanes.
    wakes = wakes or call('ZCARD', line) <= came
  end
  if wakes then
    call('PUBLISH', p .. 'news', client .. ' arrived')
  elseif changed and call('EXISTS', p .. 'crowd') == 1 then
    call('PUBLISH', p .. 'news', client .. ' changed')
  end
  return (changed and 1 or 0) + (arrived and 2 or 0)
end
