-- Bulk purge or retry. ARGV: purge or retry, now, expires, rank, then numbers. Returns kinds of changes, and the number
-- of jobs.
local before = said_before()
if before then return before end
local purges, now, expires, rank, jobs = ARGV[3] == 'purge', ARGV[4], given(ARGV[5]), given(ARGV[6]), 0
for a = 7, #ARGV do
  local number = tonumber(ARGV[a])
  local key, was = key_of(number), facts(number)
  if was and purges and was.state ~= 'leased' then
    local id = call('HGET', key, 'id')
    if id then call('HDEL', p .. 'ids', id) end
    move(number, was.state, false, was.bytes, was)
    call('DEL', key, p .. 'history:' .. string.format('%d', number))
    jobs = jobs + 1
  elseif was and not purges and (was.state == 'retrying' or LIST[was.state] == 'failed') then
    call('HSET', key, 'state', 'queued', 'reason', 'requeued by hand', 'changed_ms', now, 'attempts', 0)
    call('HDEL', key, 'retry_at_ms')
    move(number, was.state, false, was.bytes, was)
    if expires then
      call('HSET', key, 'expires_ms', expires)
      was.expires = expires
      if rank then call('HSET', key, 'rank', rank); was.rank = rank end
    end
    move(number, false, 'queued', was.bytes, was)
    note(number, now, 'queued', 'requeued by hand')
    jobs = jobs + 1
  end
end
return keep_said({ done(), jobs })
