//! The router as one of the platform's components, as it was before there were metrics: it
//! says over NATS that it is there, with its `/varz` document.

use std::sync::Arc;

use nats::client::{Client, QueueLimits, SubscribeError};
use telemetry::{Fields, Logger};

use crate::http::status::Varz;

/// Announces the router, and returns what answers those who look for components until the
/// client is closed. A question without a place for the answer is ignored.
///
/// # Errors
/// When the subscription cannot be sent.
pub(super) fn answer(
    client: Client,
    varz: Arc<Varz>,
    logger: Logger,
) -> Result<impl Future<Output = ()> + Send + 'static, SubscribeError> {
    let mut questions = client.subscribe("vcap.component.discover", QueueLimits::default())?;
    let tell = move |subjects: &mut dyn Iterator<Item = &[u8]>| {
        let document = varz.document();
        for subject in subjects {
            let sent = client.publish(subject, document.trim_end().as_bytes());
            if let Err(error) = sent {
                logger.error("component-not-told", &error, Fields::new());
                return;
            }
        }
    };
    tell(&mut [&b"vcap.component.announce"[..]].into_iter());
    Ok(async move {
        while let Some(batch) = questions.next().await {
            let asked = batch.iter().filter(|question| !question.reply.is_empty());
            tell(&mut asked.map(|question| question.reply));
        }
    })
}
