curl http://localhost:8081/login -H 'Content-Type: application/json' -d '{"user": "ada", "password": "pw-ada"}'
curl http://localhost:8081/home --compressed
