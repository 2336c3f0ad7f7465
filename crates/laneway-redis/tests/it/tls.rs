//! TLS: the server is checked, and shown who we are; without a certificate it trusts, or one that we trust, nothing is said.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::path::Path;

use laneway_core::Documents;
use laneway_redis::{RedisOptions, RedisStore, RedisTls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::conformance::next_number;
use crate::server::Server;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate and its key.
fn certify(authority: &Authority) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_server_over_tls_is_checked_and_checks() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, others) = (authority(), authority());
    let (cert, key) = certify(&ours);
    let ca_file = write(folder.path(), "ca.pem", &ours.pem());
    let (cert_file, key_file) =
        (write(folder.path(), "cert.pem", &cert), write(folder.path(), "key.pem", &key));
    let server = Server::start(&[
        "--port",
        "0",
        "--tls-port",
        "{port}",
        "--tls-cert-file",
        &cert_file,
        "--tls-key-file",
        &key_file,
        "--tls-ca-cert-file",
        &ca_file,
    ]);
    let (own_cert, own_key) = certify(&ours);
    let identity = Some((own_cert.into_bytes(), own_key.into_bytes()));
    let url = format!("rediss://localhost:{}", server.port());
    let namespace = format!("tls-{}", next_number());
    let open = async |ca: &Authority, identity| {
        let tls = RedisTls { ca: Some(ca.pem().into_bytes()), identity };
        RedisStore::open(RedisOptions { namespace: namespace.clone(), tls, ..RedisOptions::new(url.clone()) })
            .await
    };
    let store = open(&ours, identity.clone()).await.unwrap();
    assert_eq!(store.get("nothing").await.unwrap(), None);

    assert!(open(&others, identity).await.is_err(), "an authority that we do not trust vouches for it");
    assert!(open(&ours, None).await.is_err(), "it asks for a certificate");
    let plain = RedisOptions::new(url.replace("rediss://", "redis://"));
    assert!(RedisStore::open(plain).await.is_err(), "without TLS nobody answers");
}
