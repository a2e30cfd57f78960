-- Record of outcomes. ARGV: number of changes, then 13 fields of each; then name and note of keys.
-- Returns: kinds of changes, then indices of changes whose leases had expired.
local before = said_before()
if before then return before end
local said, changes = { 0 }, tonumber(ARGV[3])
for i = 0, changes - 1 do
  local a = 4 + i * 13
  local number, token, at, reason, state, retry = tonumber(ARGV[a]), ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4],
    given(ARGV[a + 5])
  local tried, by, sent, code = ARGV[a + 6] == '1', given(ARGV[a + 7]), given(ARGV[a + 8]), given(ARGV[a + 9])
  local key, was = key_of(number), facts(number)
  -- A current lease is in the list of its sender; an expired one stays there until the job is requeued.
  if not was or was.lease ~= token then
    said[#said + 1] = i
  elseif state == 'leased' then
    if by then
      call('HSET', key, 'sent_ms', sent or at, 'last_key', by)
    else
      call('HSET', key, 'sent_ms', sent or at)
      if was.key then call('HDEL', key, 'last_key') end
    end
  else
    -- An empty lease has no owner; its removal would need another call.
    local fields = { 'state', state, 'reason', reason, 'changed_ms', at, 'attempts', was.attempts + (tried and 1 or 0), 'lease',
      '' }
    local function add(name, value) fields[#fields + 1] = name; fields[#fields + 1] = value end
    if tried then
      add('sent_ms', sent)
      if by then add('last_key', by) else call('HDEL', key, 'last_key') end
      if code then add('code', code) else call('HDEL', key, 'code') end
    elseif state == 'queued' then
      call('HDEL', key, 'last_key', 'sent_ms', 'code')
    end
    if retry then add('retry_at_ms', retry) end
    if ARGV[a + 10] == '1' then add('response_headers', ARGV[a + 11]); add('response_body', ARGV[a + 12]) end
    call('HSET', key, unpack(fields))
    out_of(HELD, member(number))
    move(number, 'leased', state, was.bytes, was)
    if retry then into(p .. 'due', retry, member(number)) end
    if state ~= 'done' then note(number, at, state, reason, tried and by, tried and sent, tried and code) end
  end
end
for a = 4 + changes * 13, #ARGV, 2 do
  local key = p .. 'key:' .. ARGV[a]
  local owner = call('HGET', key, 'owner')
  -- Only the owner of a key writes its note.
  if not owner or owner == client then
    call('SADD', p .. 'keys', ARGV[a])
    call('HSET', key, 'note', ARGV[a + 1])
  end
end
said[1] = done()
return keep_said(said)
