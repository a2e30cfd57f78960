-- Edit of a job. ARGV: number, state, changed_ms, bytes as read before; now, bytes, then the fields that may change.
-- Returns kinds of changes; -1 if the job has changed meanwhile.
local number = tonumber(ARGV[3])
local key, was = key_of(number), facts(number)
if not was or was.state ~= ARGV[4] or call('HGET', key, 'changed_ms') ~= ARGV[5] or was.bytes ~= tonumber(ARGV[6]) then
  return -1
end
local function set(name, value)
  if value then call('HSET', key, name, value) else call('HDEL', key, name) end
end
local retry = call('HGET', key, 'retry_at_ms')
move(number, was.state, false, was.bytes, was)
call('HSET', key, 'reason', 'edited by hand', 'changed_ms', ARGV[7], 'bytes', ARGV[8], 'method', ARGV[9], 'url', ARGV[10],
  'priority', ARGV[13], 'weight', ARGV[14], 'templates', ARGV[19])
set('headers', given(ARGV[11]))
set('body', given(ARGV[12]))
set('expires_ms', given(ARGV[15]))
set('pinned_key', given(ARGV[16]))
set('rank', given(ARGV[17]))
set('lane', given(ARGV[18]))
move(number, false, was.state, tonumber(ARGV[8]), { hint = given(ARGV[18]), priority = tonumber(ARGV[13]),
  rank = given(ARGV[17]), expires = given(ARGV[15]) })
if was.state == 'retrying' and retry then into(p .. 'due', retry, member(number)) end
note(number, ARGV[7], was.state, 'edited by hand')
return done()
