//! A plain TCP balancer: every connection goes to the next node, and nothing is known of what is said on it.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::seam;

/// Listens until the test is over; answers where.
pub(crate) async fn balance(nodes: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    seam::spawn(async move {
        for node in nodes.iter().cycle() {
            let (mut client, _) = listener.accept().await.unwrap();
            let node = node.clone();
            seam::spawn(async move {
                // A node that is not there ends its connections, and so does one that goes away.
                let Ok(mut server) = TcpStream::connect(node).await else { return };
                drop(copy_bidirectional(&mut client, &mut server).await);
            });
        }
    });
    format!("http://{address}")
}
