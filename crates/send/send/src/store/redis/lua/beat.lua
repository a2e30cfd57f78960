-- Heartbeat of a sender, with its keys. ARGV: lease_ms, able, leaves, process and machine; number of keys to renew,
-- then name, token and whether its lease has expired by the sender's clock; number of keys to release, then name, token
-- and note; number of keys to acquire, then names.
-- Returns: kinds of changes, now, requeued jobs and those of them that may have been sent; senders: id, able, ends in;
-- keys: name, owner, free in; renewed: 1 or 0 each; acquired: token (0: not now), note, its age, orderly release, ended
-- since.
local before = said_before()
if before then return before end
local now, lease = clock(), tonumber(ARGV[3])
local me, settled = p .. 'session:' .. client, tonumber(call('HGET', p .. 'meta', 'settled_ms') or 0)
local leaves, a = ARGV[5] == '1', 7
local renewed, taken, senders, keys = {}, {}, {}, {}
local function next_word() a = a + 1; return ARGV[a - 1] end

if not leaves and not call('ZSCORE', p .. 'sessions', client) then call('PUBLISH', p .. 'news', client .. ' keys') end
call('ZADD', p .. 'sessions', leaves and now or now + lease, client)
if leaves then
  call('PUBLISH', p .. 'news', client .. ' keys')
  if call('EXISTS', HELD) == 0 then
    call('ZREM', p .. 'sessions', client)
    call('DEL', me)
  end
else
  call('HSET', me, 'able', ARGV[4], 'who', ARGV[6])
end
local jobs, sent = take_back(now)

for _ = 1, tonumber(next_word()) do
  local key, token, over = p .. 'key:' .. next_word(), tonumber(next_word()), next_word() == '1'
  local v = call('HMGET', key, 'owner', 'token')
  local known = tonumber(v[2] or 0)
  local mine = v[1] == client and known == token
  -- After a failover the table may be older than the owner's state. An owner whose lease has expired does not know
  -- whether another had the key since.
  if now < settled then mine = not over and token >= known end
  if mine then call('HSET', key, 'owner', client, 'token', token, 'until_ms', now + lease, 'given_ms', '') end
  renewed[#renewed + 1] = mine and 1 or 0
end
local gave = tonumber(next_word())
for _ = 1, gave do
  local key, token, written = p .. 'key:' .. next_word(), next_word(), next_word()
  local v = call('HMGET', key, 'owner', 'token')
  if v[1] == client and v[2] == token then
    call('HSET', key, 'owner', '', 'until_ms', now, 'given_ms', now, 'note', written)
  end
end
if gave > 0 then call('PUBLISH', p .. 'news', client .. ' keys') end
for _ = 1, tonumber(next_word()) do
  local name = next_word()
  local key = p .. 'key:' .. name
  local v = call('HMGET', key, 'owner', 'until_ms', 'token', 'note', 'given_ms')
  local ends = tonumber(v[2] or 0)
  if now < settled or (v[1] and v[1] ~= '' and ends > now) then
    taken[#taken + 1] = { 0, '', 0, 0, 0 }
  else
    -- Higher than any earlier token, also of other runs of the server.
    local token = call('HINCRBY', p .. 'meta', 'last_lease', 1)
    local given_ms = tonumber(v[5] or '') or 0
    -- Never used, or released in order; and no later write was lost.
    local good = (not v[1] or given_ms > 0 or v[1] == '') and given_ms >= settled
    if not v[1] and settled == 0 then good = true end
    call('SADD', p .. 'keys', name)
    call('HSET', key, 'owner', client, 'token', token, 'until_ms', now + lease, 'given_ms', '')
    taken[#taken + 1] = { token, v[4] or '', given_ms > 0 and now - given_ms or 0, good and 1 or 0,
      now - math.min(now, math.max(ends, settled)) }
  end
end

local both = call('ZRANGEBYSCORE', p .. 'sessions', '(' .. now, 'inf', 'WITHSCORES')
for i = 1, #both, 2 do
  local able = call('HGET', p .. 'session:' .. both[i], 'able') or '0'
  for _, word in ipairs({ both[i], able, tonumber(both[i + 1]) - now }) do senders[#senders + 1] = word end
end
for _, name in ipairs(call('SMEMBERS', p .. 'keys')) do
  local v = call('HMGET', p .. 'key:' .. name, 'owner', 'until_ms')
  local free = v[1] and v[1] ~= '' and tonumber(v[2] or 0) - now or 0
  for _, word in ipairs({ name, v[1] or '', math.max(free, settled - now, 0) }) do keys[#keys + 1] = word end
end
return keep_said({ done(), now, jobs, sent, senders, keys, renewed, taken })
