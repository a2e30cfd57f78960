//! `weir help from`: what takes the files and flags of other tools.

/// Each kind of file with the command that takes it.
pub(crate) const FROM: &str = "Bring what you have:

  you have                        weir takes it with
  locustfile.py                   weir load -s locustfile.py --users 50 -d 1m
  script.js, script.ts of k6      weir load -s script.js
  script.lua of wrk               weir load -s script.lua http://localhost:8080/
  plan.hurl                       weir load -s plan.hurl http://localhost:8080
  session.har                     weir load -s session.har
  collection.json of Postman      weir load -s collection.json
  plan.jmx of JMeter              weir load -s plan.jmx
  openapi.yaml, requests.http     weir load -s openapi.yaml http://localhost:8080
  curl commands, in a file        weir load -s login.sh
  one of the last five, to edit   weir import plan.jmx -o plan.hurl
  a visit in a browser            weir record -o plan.hurl
  access.log, at its times        weir replay access.log --target http://localhost:8080
  access.log, its mix             weir load http://localhost:8080 --mix-from access.log
  a gRPC service                  weir load grpc://localhost:50051/pkg.Service/Method -b '{}'
  a WebSocket service             weir load ws://localhost:8080/ -b hello -c 100
  results of wrk, ab, oha, k6,
    JMeter or vegeta              weir compare old.json new.json
  jobs.jsonl                      weir send jobs.jsonl --limit 20/1s

If you give a flag of ab, wrk, wrk2, hey, oha, k6, vegeta, Locust or JMeter, weir prints its own name for it.
";
