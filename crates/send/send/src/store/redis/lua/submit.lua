-- Submission of jobs. ARGV: max_jobs, max_bytes, count, then 15 fields of each.
-- Returns: kinds of changes, reason of a stop (0 none, 1 no room, 2 too large), then number and state of each job; an
-- empty state for a new one.
-- Repeated with a reply slot of its own, since it may wait for long while other calls are made.
slot = 'said:submit'
local before = said_before()
if before then return before end
local most_jobs, most_bytes, jobs = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local sizes = call('HMGET', p .. 'tally', 'queued:jobs', 'leased:jobs', 'retrying:jobs', 'queued:bytes', 'leased:bytes',
  'retrying:bytes')
for i = 1, 6 do sizes[i] = tonumber(sizes[i] or 0) end
local open_jobs, open_bytes = sizes[1] + sizes[2] + sizes[3], sizes[4] + sizes[5] + sizes[6]
local last = tonumber(call('HGET', p .. 'meta', 'last_number') or 0)
local first, stop, said = last, 0, { 0, 0 }
local function add(fields, name, value)
  if value then fields[#fields + 1] = name; fields[#fields + 1] = value end
end
-- All IDs at once, here and below: single calls would cost more than the work.
local ids, number_of_id, named = {}, {}, {}
for a = 6, #ARGV, 15 do ids[#ids + 1] = given(ARGV[a]) or nil end
for from = 1, #ids, 1000 do
  for i, known in ipairs(call('HMGET', p .. 'ids', unpack(ids, from, math.min(from + 999, #ids)))) do
    number_of_id[ids[from + i - 1]] = known
  end
end
for i = 0, jobs - 1 do
  local a = 6 + i * 15
  local id = given(ARGV[a])
  local known = id and number_of_id[id]
  if known then
    said[#said + 1] = tonumber(known)
    said[#said + 1] = call('HGET', key_of(known), 'state') or 'done'
  else
    local bytes = tonumber(ARGV[a + 12])
    if bytes > most_bytes then stop = 2; break end
    if open_jobs >= most_jobs or open_bytes + bytes > most_bytes then stop = 1; break end
    last, open_jobs, open_bytes = last + 1, open_jobs + 1, open_bytes + bytes
    local was = { hint = given(ARGV[a + 13]), priority = tonumber(ARGV[a + 2]), rank = given(ARGV[a + 3]),
      expires = given(ARGV[a + 5]) }
    local created = ARGV[a + 4]
    local fields = { 'state', 'queued', 'reason', 'submitted', 'changed_ms', created, 'attempts', 0, 'created_ms', created,
      'priority', ARGV[a + 2], 'weight', ARGV[a + 6], 'bytes', ARGV[a + 12], 'method', ARGV[a + 7], 'url',
      ARGV[a + 8], 'templates', ARGV[a + 14] }
    add(fields, 'id', id)
    add(fields, 'pinned_key', given(ARGV[a + 1]))
    add(fields, 'lane', was.hint)
    add(fields, 'rank', was.rank)
    add(fields, 'expires_ms', was.expires)
    add(fields, 'headers', given(ARGV[a + 9]))
    add(fields, 'idempotency_key', given(ARGV[a + 10]))
    add(fields, 'body', given(ARGV[a + 11]))
    call('HSET', key_of(last), unpack(fields))
    if id then
      -- The ID may occur again in this batch.
      number_of_id[id] = last
      named[#named + 1] = id
      named[#named + 1] = last
    end
    move(last, false, 'queued', bytes, was)
    said[#said + 1] = last
    said[#said + 1] = ''
  end
end
for from = 1, #named, 1000 do call('HSET', p .. 'ids', unpack(named, from, math.min(from + 999, #named))) end
if last ~= first then call('HSET', p .. 'meta', 'last_number', string.format('%d', last)) end
if stop == 1 then call('SET', p .. 'crowd', 1, 'PX', 5000) end
said[1], said[2] = done(), stop
return keep_said(said)
