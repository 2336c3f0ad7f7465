//! TLS: certificates from files, callers with certificates, and reading them again without a restart.

use std::path::Path;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustix::process::Signal;

use crate::program::{Program, run};
use crate::protected::{Token, write_private};
use crate::seam;

type Ca = CertifiedIssuer<'static, KeyPair>;

fn ca() -> Ca {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes NAME.pem and NAME.key.
fn certify(folder: &Path, name: &str, ca: &Ca, hosts: &[&str]) {
    let key = KeyPair::generate().unwrap();
    let mut params =
        CertificateParams::new(hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()).unwrap();
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let cert = params.signed_by(&key, ca).unwrap();
    write_private(&folder.join(format!("{name}.key")), &key.serialize_pem());
    std::fs::write(folder.join(format!("{name}.pem")), cert.pem()).unwrap();
}

/// curl's exit code, and what it wrote.
fn curl(folder: &Path, args: &[&str]) -> (i32, String) {
    let output =
        Command::new("curl").current_dir(folder).args(["-sS", "--max-time", "20"]).args(args).output();
    let output = output.unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

const TLS: [&str; 4] = ["--tls-cert", "server.pem", "--tls-key", "server.key"];

#[tokio::test(flavor = "multi_thread")]
async fn tls_with_a_token_opens_the_server_to_others_and_certificates_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (ca(), ca());
    std::fs::write(folder.path().join("first.pem"), first.pem()).unwrap();
    std::fs::write(folder.path().join("second.pem"), second.pem()).unwrap();
    certify(folder.path(), "server", &first, &["127.0.0.1"]);
    let token = Token::new("billing", "read");
    write_private(&folder.path().join("tokens"), &token.line);
    let args = [&["--listen", "0.0.0.0:0", "--token-file", "tokens"], &TLS[..]].concat();
    let mut program = Program::serve_as(folder.path(), &args, &[]).await;
    program.keep_secret([token.secret.clone()]);
    let port = program.address().rsplit(':').next().unwrap().to_owned();
    assert!(program.address().starts_with("https://"), "{}", program.address());
    let url = format!("https://127.0.0.1:{port}/v1/streams");
    let bearer = format!("Authorization: Bearer {}", token.secret);
    let (ended, told) = curl(folder.path(), &["--cacert", "first.pem", "-H", &bearer, &url]);
    assert!(ended == 0 && told.contains("items") || told.contains("streams"), "{ended}: {told}");
    let (_, told) = curl(folder.path(), &["--cacert", "first.pem", &url]);
    assert!(told.contains("token_required"), "{told}");
    let (ended, _) = curl(folder.path(), &["--cacert", "first.pem", "--tls-max", "1.1", &url]);
    assert_ne!(ended, 0, "TLS 1.1 is too old");
    let (ended, _) = curl(folder.path(), &["--cacert", "first.pem", "--tls-max", "1.2", "-H", &bearer, &url]);
    assert_eq!(ended, 0, "TLS 1.2 is not");
    let plain = format!("http://127.0.0.1:{port}/livez");
    assert_ne!(curl(folder.path(), &[&plain]).0, 0, "nothing is said without TLS");

    certify(folder.path(), "server", &second, &["127.0.0.1"]);
    program.signal(Signal::HUP);
    seam::until("the second certificate", async || {
        (curl(folder.path(), &["--cacert", "second.pem", "-H", &bearer, &url]).0 == 0).then_some(())
    })
    .await;
    std::fs::write(folder.path().join("server.pem"), "no certificate").unwrap();
    program.signal(Signal::HUP);
    seam::until("the refusal of the third", async || {
        program.errors().contains("the certificates of before stay in use").then_some(())
    })
    .await;
    assert_eq!(curl(folder.path(), &["--cacert", "second.pem", "-H", &bearer, &url]).0, 0);
    program.stop().await;
}

/// The command line with certificates and a token from files; what is not allowed ends with its own code.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_trusts_its_own_authority_and_shows_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let authority = ca();
    std::fs::write(folder.path().join("authority.pem"), authority.pem()).unwrap();
    certify(folder.path(), "server", &authority, &["127.0.0.1"]);
    let token = Token::new("billing", "read");
    write_private(&folder.path().join("tokens"), &token.line);
    write_private(&folder.path().join("mine"), &token.secret);
    let args = [&["--listen", "127.0.0.1:0", "--token-file", "tokens"], &TLS[..]].concat();
    let mut program = Program::serve_as(folder.path(), &args, &[]).await;
    program.keep_secret([token.secret.clone()]);
    let asked = |more: &[&str], verb: &[&str]| {
        let output = run(folder.path(), &[verb, &["--server", program.address()], more].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!told.contains(&token.secret), "{told}");
        (output.status.code().unwrap(), told)
    };
    let trusted = ["--ca-file", "authority.pem", "--token-file", "mine"];
    assert_eq!(asked(&trusted, &["stream", "ls"]).0, 0);
    let (code, told) = asked(&trusted, &["stream", "create", "mails"]);
    assert!(code == 8 && told.contains("--token-file"), "{code}: {told}");
    assert_eq!(asked(&trusted[..2], &["stream", "ls"]).0, 8, "without its token");
    let (code, told) = asked(&trusted[2..], &["stream", "ls"]);
    assert!(code == 6 && told.contains("--ca-file"), "{code}: {told}");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_a_certificate_is_refused_where_callers_need_one() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, foreign) = (ca(), ca());
    std::fs::write(folder.path().join("ca.pem"), ours.pem()).unwrap();
    certify(folder.path(), "server", &ours, &["127.0.0.1"]);
    certify(folder.path(), "caller", &ours, &["caller"]);
    certify(folder.path(), "foreign", &foreign, &["caller"]);
    let args = [&TLS[..], &["--tls-client-ca", "ca.pem"]].concat();
    let program = Program::serve_as(folder.path(), &args, &[]).await;
    let url = format!("{}/livez", program.address());
    let with = |name: &str| {
        let (cert, key) = (format!("{name}.pem"), format!("{name}.key"));
        curl(folder.path(), &["--cacert", "ca.pem", "--cert", &cert, "--key", &key, &url])
    };
    assert_eq!(with("caller"), (0, "ok\n".to_owned()));
    assert_ne!(with("foreign").0, 0);
    assert_ne!(curl(folder.path(), &["--cacert", "ca.pem", &url]).0, 0);
    program.stop().await;
}

#[test]
fn a_key_that_others_may_read_or_that_is_none_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path(), "server", &ca(), &["127.0.0.1"]);
    let refusal = || {
        let args = [&["serve", "--store", "memory:", "--listen", "127.0.0.1:0"], &TLS[..]].concat();
        let output = run(folder.path(), &args);
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let key = folder.path().join("server.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o604)).unwrap();
    assert!(refusal().contains("chmod 600 server.key"));
    write_private(&key, "canary");
    let told = refusal();
    assert!(told.contains("server.key: has no private key as PEM") && !told.contains("canary"), "{told}");
}
