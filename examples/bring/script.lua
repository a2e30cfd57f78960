-- Log in as one user after the other, as wrk plays it: wrk -s script.lua http://localhost:8081
local users = { "ada", "grace", "alan" }
local number = 0

function request()
  number = number + 1
  local user = users[number % #users + 1]
  local body = string.format('{"user": "%s", "password": "pw-%s"}', user, user)
  return wrk.format("POST", "/login", { ["Content-Type"] = "application/json" }, body)
end
