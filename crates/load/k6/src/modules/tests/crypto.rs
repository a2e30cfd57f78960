//! k6/crypto, and the global `crypto`.

use serde_json::json;

use crate::tests::{failure, run};

#[test]
fn digests_have_the_encodings_of_k6() {
    let made = run("import crypto, { createHash, createHMAC, hexEncode, randomBytes } from 'k6/crypto';
        const t = 'häll0';
        export default () => {
          const h = createHash('sha256'); h.update('hä'); h.update(new Uint8Array([108, 108, 48]).buffer);
          const m = createHMAC('sha256', 'key'); m.update('a'); m.update('b');
          return [crypto.md5(t, 'hex'), crypto.sha1('', 'hex'), h.digest('hex') === crypto.sha256(t, 'hex'),
            crypto.md5(t, 'base64'), crypto.md5(t, 'base64url'), crypto.md5(t, 'base64rawurl'),
            m.digest('hex'), crypto.hmac('sha256', 'key', 'ab', 'hex'), hexEncode('az'),
            crypto.sha512_224(t, 'hex').length, crypto.sha512_256(t, 'hex').length, crypto.sha384(t, 'binary').byteLength,
            crypto.sha512(new Uint8Array([1, 2]).buffer, 'hex').slice(0, 8), randomBytes(7).byteLength];
        };");
    let hmac = "5c1c0c948cbef5ad7d191e46e5901fa0395f85f694fa4633f665a1a637017b65";
    assert_eq!(made[0], "01cd6e76a1aa8bb6c4d884f93da34984");
    assert_eq!(made[1], "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    assert_eq!(made[2], true);
    assert_eq!(
        (&made[3], &made[4], &made[5]),
        (&json!("Ac1udqGqi7bE2IT5PaNJhA=="), &json!("Ac1udqGqi7bE2IT5PaNJhA=="), &json!("Ac1udqGqi7bE2IT5PaNJhA"))
    );
    assert_eq!((&made[6], &made[7]), (&json!(hmac), &json!(hmac)));
    assert_eq!(
        made.as_array().map(|all| all[8..12].to_vec()),
        Some(vec![json!("617a"), json!(56), json!(64), json!(48)])
    );
    assert_eq!(made[13], 7);
}

#[test]
fn what_is_not_there_is_rejected_by_name() {
    let rejected = |call: &str| failure(&format!("import crypto from 'k6/crypto';\nexport default () => {call};"));
    assert_eq!(
        rejected("crypto.md4('a', 'hex')"),
        "main.js:2: TypeError: the hash algorithm 'md4' is not supported; use sha256"
    );
    assert!(rejected("crypto.ripemd160('a', 'hex')").contains("'ripemd160' is not supported"));
    assert!(rejected("crypto.createHash('sha3')").contains("unknown hash algorithm 'sha3'"));
    assert!(rejected("crypto.md5('a', 'hexx')").contains("invalid output encoding 'hexx'"));
    assert!(rejected("crypto.md5(7, 'hex')").contains("neither a text nor bytes"));
    assert!(rejected("crypto.randomBytes(0)").contains("invalid size '0'"));
    assert!(rejected("crypto.randomBytes(1e12)").contains("random bytes"));
}

#[test]
fn web_crypto_signs_and_encrypts() {
    let made = run("const text = new Uint8Array([1, 2, 3]);
        export default async () => {
          const { subtle } = crypto;
          const out = [];
          for (const name of ['AES-CBC', 'AES-GCM', 'AES-CTR']) {
            const key = await subtle.generateKey({ name, length: 256 }, true, ['encrypt', 'decrypt']);
            const iv = crypto.getRandomValues(new Uint8Array(name === 'AES-GCM' ? 12 : 16));
            const how = name === 'AES-CTR' ? { name, counter: iv, length: 64 } : { name, iv };
            const sealed = await subtle.encrypt(how, key, text);
            out.push([...new Uint8Array(await subtle.decrypt(how, key, sealed))], sealed.byteLength);
            const again = await subtle.importKey('raw', await subtle.exportKey('raw', key), name, false, ['decrypt']);
            out.push(new Uint8Array(await subtle.decrypt(how, again, sealed)).length);
          }
          const hmac = { name: 'HMAC', hash: 'SHA-256' };
          const key = await subtle.importKey('raw', new Uint8Array([107, 101, 121]), hmac, true, ['sign', 'verify']);
          const sign = await subtle.sign('HMAC', key, new Uint8Array([97, 98]));
          out.push([...new Uint8Array(sign)].slice(0, 2), await subtle.verify('HMAC', key, sign, new Uint8Array([97, 98])),
            await subtle.verify('HMAC', key, sign, new Uint8Array([97])), (await subtle.exportKey('jwk', key)).k);
          out.push((await subtle.digest('SHA-1', new Uint8Array(0))).byteLength);
          out.push(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()));
          return out;
        };");
    let expected =
        json!([[1, 2, 3], 16, 3, [1, 2, 3], 19, 3, [1, 2, 3], 3, 3, [0x5c, 0x1c], true, false, "a2V5", 20, true]);
    assert_eq!(made, expected);
}

#[test]
fn web_crypto_rejects_the_rest_by_name() {
    let made = run("export default async () => {
          const out = [];
          const no = async (call) => { try { await call(); out.push('ok'); } catch (e) { out.push(`${e.name}: ${e.message}`); } };
          await no(() => crypto.subtle.deriveBits({}));
          await no(() => crypto.subtle.generateKey({ name: 'RSA-PSS' }, true, ['sign']));
          await no(() => crypto.subtle.digest('MD5', new Uint8Array(1)));
          await no(() => crypto.subtle.digest('SHA-1', 'text'));
          const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, false, ['encrypt']);
          await no(() => crypto.subtle.decrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, key, new Uint8Array(20)));
          await no(() => crypto.subtle.exportKey('raw', key));
          await no(() => crypto.subtle.encrypt({ name: 'AES-GCM', iv: new Uint8Array(16) }, key, new Uint8Array(2)));
          await no(async () => crypto.getRandomValues(new Uint8Array(70000)));
          return out;
        };");
    let text = made.to_string();
    for part in [
        "deriveBits() is not supported",
        "'RSA-PSS' is not supported",
        "'MD5' is not supported",
        "TypeError: the data is neither",
        "InvalidAccessError: the key is not for 'decrypt'",
        "InvalidAccessError: the key is not extractable",
        "OperationError: AES-GCM with a vector of 16 bytes is not supported; use 12",
        "QuotaExceededError",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
