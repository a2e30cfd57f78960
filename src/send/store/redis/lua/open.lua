-- A connection begins. ARGV: run, version, order, lease_ms, whether to make a queue. Says: version, order, now; nothing if
-- there is no queue.
-- Another run of the server may know less than the last one knew (a restart, a failover): numbers go on far above what
-- may have been given, and no key is handed out before all who hold one have either said so or stopped.
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
