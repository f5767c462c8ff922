use std::sync::Arc;

use super::*;

/// An event for those who asked for its number's parity.
struct Number(u32, String);

impl Number {
    fn batch(numbers: &[u32]) -> Arc<[Self]> {
        let written = |number: &u32| Self(*number, format!("data: {number}\n\n"));
        numbers.iter().map(written).collect()
    }
}

impl Event for Number {
    type Interest = u32;

    fn text(&self) -> &str {
        &self.1
    }

    fn concerns(&self, parity: &u32) -> bool {
        self.0 % 2 == *parity
    }
}

fn plain(text: &str) -> Arc<[String]> {
    [format!("data: {text}\n\n")].into()
}

async fn next<E: Event>(subscription: &mut Subscription<E>) -> Option<String> {
    let bytes = subscription.next().await?;
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn events_are_numbered_from_0_for_each_subscriber() {
    let topic = Arc::new(Topic::new(8));
    let mut first = topic.subscribe(());
    topic.publish(&plain("a"), |()| true);
    topic.publish(&plain("b"), |()| true);
    let mut second = topic.subscribe(());
    let told = topic.publish(&plain("c"), |()| true);
    assert_eq!((told.subscribers, told.too_slow), (2, 0));
    let all = "id: 0\ndata: a\n\nid: 1\ndata: b\n\nid: 2\ndata: c\n\n";
    assert_eq!(next(&mut first).await.as_deref(), Some(all));
    let last = "id: 0\ndata: c\n\n";
    assert_eq!(next(&mut second).await.as_deref(), Some(last));
    topic.publish(&plain("d"), |()| true);
    let more = "id: 3\ndata: d\n\n";
    assert_eq!(next(&mut first).await.as_deref(), Some(more));
}

#[tokio::test]
async fn a_subscriber_hears_only_what_concerns_it() {
    let topic = Arc::new(Topic::new(2));
    let (mut even, mut odd) = (topic.subscribe(0), topic.subscribe(1));
    let told = topic.publish(&Number::batch(&[1, 2, 3]), |_| true);
    assert_eq!((told.subscribers, told.too_slow), (2, 0));
    // For the odd one two events wait, for the even one only one.
    let told = topic.publish(&Number::batch(&[4, 5]), |_| true);
    assert_eq!((told.subscribers, told.too_slow), (2, 1));
    let all = "id: 0\ndata: 2\n\nid: 1\ndata: 4\n\n";
    assert_eq!(next(&mut even).await.as_deref(), Some(all));
    assert_eq!(next(&mut odd).await, None);
    let told = topic.publish(&Number::batch(&[6]), |parity| *parity == 0);
    assert_eq!((told.subscribers, told.too_slow), (1, 0));
}

#[tokio::test]
async fn a_slow_subscriber_is_cut_off_and_it_alone() {
    let topic = Arc::new(Topic::new(2));
    let mut slow = topic.subscribe(());
    let mut quick = topic.subscribe(());
    for number in 1..=3 {
        let told = topic.publish(&plain("x"), |()| true);
        assert_eq!(told.too_slow, usize::from(number == 3));
        assert!(quick.next().await.is_some());
    }
    slow.closed().await;
    assert_eq!(slow.next().await, None);
    assert_eq!(topic.subscribers(), 2);
    drop(slow);
    assert_eq!(topic.subscribers(), 1);
}

#[tokio::test]
async fn what_concerns_others_and_is_kept_for_a_slow_subscriber_has_a_bound() {
    let topic = Arc::new(Topic::new(2));
    let mut slow = topic.subscribe(1);
    let foreign: Vec<u32> = (0..100).map(|number| 2 * number).collect();
    let mut batch = vec![1];
    batch.extend(foreign);
    let batch = Number::batch(&batch);
    // Of what concerns it one event waits, which is fine.
    assert_eq!(topic.publish(&batch, |_| true).too_slow, 0);
    assert!(slow.next().await.is_some());
    assert_eq!(topic.publish(&batch, |_| true).too_slow, 0);
    let others = Number::batch(&[vec![1], vec![2; 200]].concat());
    assert!(slow.next().await.is_some());
    assert_eq!(topic.publish(&others, |_| true).too_slow, 0);
    assert_eq!(topic.publish(&others, |_| true).too_slow, 1);
    slow.closed().await;
}

#[tokio::test]
async fn a_topic_that_was_cut_off_takes_new_subscribers() {
    let topic = Arc::new(Topic::new(2));
    let mut before = topic.subscribe(());
    topic.publish(&plain("a"), |()| true);
    topic.cut_off();
    // What was told before still arrives.
    assert!(before.next().await.is_some());
    assert_eq!(before.next().await, None);
    let mut after = topic.subscribe(());
    topic.publish(&plain("b"), |()| true);
    assert!(after.next().await.is_some());
}

#[tokio::test]
async fn a_closed_topic_ends_what_is_and_what_comes() {
    let topic = Arc::new(Topic::<String>::new(2));
    let mut before = topic.subscribe(());
    topic.close();
    assert_eq!(before.next().await, None);
    assert_eq!(topic.subscribe(()).next().await, None);
}
