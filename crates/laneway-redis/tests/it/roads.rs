//! The whole workload of the conformance suite over a road to the server that breaks again and again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_testkit::fault::{Proxy, Road};
use laneway_testkit::on_bad_roads;

use crate::conformance::RedisFixture;
use crate::server::SHARED;

#[test]
fn bad_roads_to_the_server_break_no_promise() {
    let proxy = Proxy::start(SHARED.address()).unwrap();
    let mut met: BTreeMap<Road, u64> = BTreeMap::new();
    for seed in [5, 20_265] {
        let url = format!("redis://{}", proxy.address());
        let fixture = RedisFixture::impatient(url, Duration::from_millis(150));
        for (road, times) in on_bad_roads(Arc::new(fixture), &proxy, seed) {
            *met.entry(road).or_default() += times;
        }
    }
    println!("roads met: {met:?}, violations 0, {:?}", proxy.carried());
    assert_eq!(met.len(), 6, "every kind of fault: {met:?}");
}
