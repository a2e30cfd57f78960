#!/usr/bin/env bash
# Writes certificates/: a certificate authority for this machine alone, and a certificate of localhost that it has
# signed. For a test; in production they come from your CA's client (certbot, cert-manager, step).
set -euo pipefail
umask 077
mkdir -p "$(dirname "$0")/certificates"
cd "$(dirname "$0")/certificates"

key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
openssl req -x509 "${key[@]}" -days 30 -subj "/CN=weir example CA" -keyout ca-key.pem -out ca.pem 2>/dev/null
openssl req "${key[@]}" -subj "/CN=localhost" -keyout new-key.pem -out site.csr 2>/dev/null
printf '%s\n' "subjectAltName=DNS:localhost,IP:127.0.0.1" "extendedKeyUsage=serverAuth" >site.ext
openssl x509 -req -in site.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 30 -extfile site.ext -out new.pem 2>/dev/null

# Each file is replaced at once: a gateway that runs takes the new ones within a second.
mv new-key.pem site-key.pem
mv new.pem site.pem
rm site.csr site.ext
