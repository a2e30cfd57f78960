-- Start of a connection. ARGV: run, version, order, lease_ms, whether to create the queue. Returns: version, order,
-- now; nothing without the queue.
-- Another run of the server may have lost writes (restart, failover): numbers continue far above those that may have
-- been given, and no key is given away until its owner has reported it or must have stopped.
local meta, now = p .. 'meta', clock()
if ARGV[7] == '0' and call('EXISTS', meta) == 0 then return {} end
call('HSETNX', meta, 'version', ARGV[4])
call('HSETNX', meta, 'order', ARGV[5])
local found = call('HMGET', meta, 'run', 'lease_ms', 'version', 'order')
local lease = math.max(tonumber(found[2] or 0), tonumber(ARGV[6]))
if found[2] ~= tostring(lease) then call('HSET', meta, 'lease_ms', lease) end
if found[1] ~= ARGV[3] then
  call('HSET', meta, 'run', ARGV[3])
  if found[1] then
    call('HINCRBY', meta, 'last_number', 1000000)
    call('HINCRBY', meta, 'last_lease', 1000000000)
    call('HSET', meta, 'settled_ms', now + lease)
  end
end
return { found[3], found[4], now }
