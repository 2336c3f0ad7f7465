//! Who owns what while nodes join, leave, die, are cut off and are steered.

use std::time::Duration;

use laneway_engine::cluster::{NodeSettings, SeatView};

use crate::seam;
use crate::shop::{AND_THEN, LEASE, Node, PARTITIONS, Shop, lane_in_each, until};

const ALL: usize = PARTITIONS as usize;

#[tokio::test(start_paused = true)]
async fn nodes_share_the_seats_and_one_that_dies_is_followed_within_its_lease_and_two_seconds() {
    let mut shop = Shop::open();
    let one = shop.join("one").await;
    until("the first owns all", || one.owns() == ALL).await;
    let two = shop.join("two").await;
    until("they share", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
    one.send(0..20).await;
    until("both work", || ["one", "two"].iter().all(|node| shop.done().iter().any(|ran| ran.node == *node)))
        .await;
    one.die();
    let died = shop.now();
    until("the other owns all", || two.owns() == ALL).await;
    let took = shop.now().since(died);
    assert!(took <= LEASE + AND_THEN, "it took {took:?}");
    shop.all_done(200).await;
    let cluster = two.cluster().await;
    assert_eq!(cluster.nodes.iter().map(|node| node.token).collect::<Vec<_>>(), [two.token()]);
    assert_eq!(cluster.leader.map(|leader| leader.node), Some(two.token()));
    assert!(cluster.seats.iter().all(|seat| seat.owner == Some(two.token()) && seat.planned == seat.owner));
}

#[tokio::test(start_paused = true)]
async fn seats_move_to_a_new_node_without_running_anything_twice() {
    let mut shop = Shop::open();
    let one = shop.join("one").await;
    one.send(0..30).await;
    until("work has begun", || !shop.done().is_empty()).await;
    let two = shop.join("two").await;
    let three = shop.join("three").await;
    until("all three work", || {
        one.owns() + two.owns() + three.owns() == ALL && two.owns() > 1 && three.owns() > 1
    })
    .await;
    shop.all_done(300).await;
    assert_eq!(shop.began().len(), 300, "nothing was begun twice");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_goes_hands_over_at_once() {
    let mut shop = Shop::open();
    let (one, two) = (shop.join("one").await, shop.join("two").await);
    until("they share", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
    two.send(0..20).await;
    until("work has begun", || !shop.done().is_empty()).await;
    let began = shop.now();
    seam::within(LEASE, one.engine.drain(Duration::from_secs(5))).await;
    until("the other owns all", || two.owns() == ALL).await;
    assert!(shop.now().since(began) < Duration::from_secs(3), "nobody waits for a lease to end");
    shop.all_done(200).await;
    assert_eq!(shop.began().len(), 200, "nothing was begun twice");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_cut_off_drops_everything_before_others_take_it_and_joins_again() {
    let mut shop = Shop::open();
    let (one, two) = (shop.join("one").await, shop.join("two").await);
    until("they share", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
    let before = one.token();
    one.cut_off();
    let cut = shop.now();
    // It could still reach the events: what keeps it from them is its own clock (invariant L3).
    until("it owns nothing", || one.owns() == 0).await;
    let dropped = shop.now().since(cut);
    assert!(dropped < LEASE, "it dropped its seats after {dropped:?}");
    assert_eq!(two.owns(), ALL / 2, "nobody has taken anything yet");
    until("the other owns all", || two.owns() == ALL).await;
    assert!(shop.now().since(cut) <= LEASE + AND_THEN);
    one.heal();
    until("they share again", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
    assert_ne!(one.token(), before, "it is another node now");
    two.send(0..5).await;
    shop.all_done(50).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_outlasts_the_grace_is_given_back_and_is_no_attempt() {
    let mut shop = Shop::open();
    let one = shop.join("one").await;
    until("the first owns all", || one.owns() == ALL).await;
    for lane in 0..16 {
        one.send_one(&format!("long-{lane}"), 60).await;
    }
    until("all run", || shop.began().len() == 16).await;
    let two = shop.join("two").await;
    let grace = NodeSettings::new("").grace;
    until("they share", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
    shop.all_done(16).await;
    let again = shop.began().len() - 16;
    assert!((1..16).contains(&again), "{again} were begun again, elsewhere, after {grace:?}");
    let elsewhere = shop.began().iter().filter(|ran| ran.node == "two").count();
    assert_eq!(elsewhere, again);
    assert_eq!(shop.done().len(), 16, "each was done once");
}

/// The seats as soon as so many of them are to move.
async fn moving(node: &Node, count: usize) -> Vec<SeatView> {
    loop {
        let seats = node.cluster().await.seats;
        if seats.iter().filter(|seat| seat.planned != seat.owner).count() == count {
            return seats;
        }
        seam::wait(Duration::from_millis(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_seats_move_and_the_others_do_not_stop_for_it() {
    let mut shop = Shop::open();
    let (one, two) = (shop.join("one").await, shop.join("two").await);
    until("they share", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
    let (long, quick) = (lane_in_each("long"), lane_in_each("quick"));
    for key in &long {
        one.send_one(key, 60).await;
    }
    until("a run in each seat", || shop.began().len() == ALL).await;
    let three = shop.join("three").await;
    let before = seam::within(LEASE, moving(&one, 2)).await;
    let stays = |partition: usize| before[partition].planned == before[partition].owner;
    let staying: Vec<&String> = (0..ALL).filter(|at| stays(*at)).map(|at| &quick[at]).collect();
    let givers: Vec<_> =
        before.iter().filter(|seat| seat.planned != seat.owner).map(|seat| seat.owner).collect();
    assert_eq!(givers.len(), 2);
    assert_ne!(givers[0], givers[1], "each gives one of its four");

    // The runs of those that move take longer than the grace: all that time events of the others come and are done, each
    // when the one before it is settled.
    let mut number = 100;
    while three.owns() < 2 {
        let sent = shop.now();
        for key in &staying {
            one.send_one(key, number).await;
        }
        until("they are done", || shop.done().iter().filter(|ran| ran.number == number).count() == ALL - 2)
            .await;
        let took = shop.now().since(sent);
        assert!(took < Duration::from_millis(300), "number {number} took {took:?}: it waited for the move");
        number += 1;
    }
    assert!(number > 130, "the move took long: {number}");
    until("the long ones are done", || shop.done().iter().filter(|ran| ran.number == 60).count() == ALL)
        .await;
    let after = one.cluster().await.seats;
    for (partition, (before, after)) in before.iter().zip(&after).enumerate() {
        let begun: Vec<_> = shop.began().into_iter().filter(|ran| ran.key == long[partition]).collect();
        if stays(partition) {
            assert_eq!((after.owner, after.term), (before.owner, before.term), "it was not taken anew");
            assert_eq!(begun.len(), 1, "its run was not disturbed: {begun:?}");
        } else {
            assert!(after.owner == Some(three.token()) && after.term > before.term, "{after:?}");
            assert_eq!(begun.len(), 2, "its run was given back: {begun:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_lease_fences_its_node_which_joins_again() {
    let mut shop = Shop::open();
    let (one, two) = (shop.join("one").await, shop.join("two").await);
    until("they share", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
    one.send(0..10).await;
    let broken = two.engine.cluster().break_lease("one").await.unwrap();
    assert_eq!(broken, one.token());
    until("it has another life", || one.token() != broken).await;
    until("they share again", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
    shop.all_done(100).await;
    // An owner that has nothing to commit learns it too.
    let seat = two.cluster().await.seats.remove(3);
    two.engine.cluster().break_seat(&seat).await.unwrap();
    seam::wait(LEASE).await;
    let again = two.cluster().await.seats.remove(3);
    assert!(again.owner == seat.owner && again.term > seat.term, "{again:?}");
    two.engine.cluster().break_lease("three").await.expect_err("there is no such node");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_again_at_once_takes_its_seats_anew() {
    let mut shop = Shop::open();
    let one = shop.join("one").await;
    until("it owns all", || one.owns() == ALL).await;
    one.send(0..10).await;
    let broken = one.engine.cluster().break_lease("one").await.unwrap();
    until("it has another life", || one.token() != broken).await;
    one.send(10..20).await;
    shop.all_done(200).await;
    // What it does under the old name, others may take at any moment.
    let cluster = one.cluster().await;
    assert!(cluster.seats.iter().all(|seat| seat.owner == Some(one.token())), "{:?}", cluster.seats);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_to_be_drained_owns_nothing_until_that_is_lifted() {
    let mut shop = Shop::open();
    let (one, two) = (shop.join("one").await, shop.join("two").await);
    until("they share", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
    two.engine.cluster().drain("one", true).await.unwrap();
    until("the other owns all", || one.owns() == 0 && two.owns() == ALL).await;
    assert!(one.cluster().await.nodes.iter().any(|node| node.name == "one" && node.drained));
    one.send(0..3).await;
    shop.all_done(30).await;
    one.engine.cluster().drain("one", false).await.unwrap();
    until("they share again", || one.owns() == ALL / 2 && two.owns() == ALL / 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_standby_waits_until_it_is_needed() {
    let mut shop = Shop::open();
    let one = shop.join("one").await;
    let two = shop.join_as("two", NodeSettings { standby: true, ..NodeSettings::new("two") }).await;
    seam::wait(4 * LEASE).await;
    assert_eq!([one.owns(), two.owns()], [ALL, 0]);
    one.die();
    until("the standby owns all", || two.owns() == ALL).await;
}

#[tokio::test(start_paused = true)]
async fn settings_beyond_their_limits_are_refused_all_at_once() {
    let wrong = NodeSettings { weight: 0, lease: Duration::ZERO, ..NodeSettings::new("") };
    let faults = wrong.check().unwrap_err();
    let fields: Vec<_> = faults.iter().map(|fault| fault.field).collect();
    assert_eq!(fields, ["node.name", "node.weight", "node.lease"]);
}
