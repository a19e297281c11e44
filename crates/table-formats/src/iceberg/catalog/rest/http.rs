//! Requests and answers: with limits of time and size, tried again where that does no harm, and without secrets in errors.

use std::{fmt, time::Duration};

use reqwest::{
    Method, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
    redirect::Policy,
};
use serde::de::DeserializeOwned;
use url::Url;

use super::secret::Secret;
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// The most that an answer may have, in bytes: metadata of a table of many snapshots, or a page of a list.
const MOST_BYTES: usize = 256 << 20;
/// The most of an answer that is no success.
const MOST_BYTES_OF_REFUSAL: usize = 64 << 10;
/// The most of a server's message that an error repeats, in characters.
const MOST_SAID: usize = 500;
/// How often a call is tried.
const TRIES: u32 = 4;
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How long a server may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// To take a connection.
    pub connect: Duration,
    /// To answer in full.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), answer: Duration::from_mins(1) }
    }
}

/// One request.
#[derive(Debug, Clone)]
pub(super) struct Call {
    method: Method,
    url: Url,
    body: Option<Body>,
    repeatable: bool,
    /// It goes to a token server.
    about_tokens: bool,
}

#[derive(Clone)]
struct Body {
    content_type: &'static str,
    bytes: Vec<u8>,
}

// A body may hold a secret.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {}", self.bytes.len(), self.content_type)
    }
}

impl Call {
    pub(super) fn new(method: Method, url: Url) -> Self {
        let repeatable = method.is_safe();
        Self { method, url, body: None, repeatable, about_tokens: false }
    }

    pub(super) fn json(mut self, value: &impl serde::Serialize) -> Result<Self> {
        let wrong = |e| Error::new(ErrorKind::Internal, "a request could not be written as JSON").because(e);
        let bytes = serde_json::to_vec(value).map_err(wrong)?;
        self.body = Some(Body { content_type: "application/json", bytes });
        Ok(self)
    }

    pub(super) fn form(mut self, form: String) -> Self {
        let content_type = "application/x-www-form-urlencoded";
        self.body = Some(Body { content_type, bytes: form.into_bytes() });
        self
    }

    /// It goes to a token server, whose answers are secret, and whom the catalog's own headers do not concern.
    pub(super) fn about_tokens(mut self) -> Self {
        self.about_tokens = true;
        self
    }

    /// It does no harm to make this call twice.
    pub(super) fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }
}

/// What came back.
pub(super) struct Answer {
    pub status: StatusCode,
    bytes: Vec<u8>,
    place: String,
    secrets: Vec<Secret>,
    about_tokens: bool,
}

impl Answer {
    /// What it says.
    ///
    /// # Errors
    /// `Corrupt` when it is something else.
    pub(super) fn json<T: DeserializeOwned>(&self, what: &str) -> Result<T> {
        serde_json::from_slice(&self.bytes).map_err(|e| {
            let message = format!("the server answered something else than {what}");
            let error = Error::new(ErrorKind::Corrupt, message).with("at", &self.place);
            // The cause may repeat a part of the answer.
            if self.about_tokens { error } else { error.because(e) }
        })
    }

    pub(super) fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.bytes).ok()
    }

    /// An error that tells this answer, and what the server said.
    pub(super) fn error(&self, kind: ErrorKind, message: &str, said: Option<String>) -> Error {
        let error = Error::new(kind, message).with("at", &self.place).with("status", self.status.as_u16());
        match said {
            Some(said) => error.with("the server says", self.clean(&said)),
            None => error,
        }
    }

    /// In one line, not too long, and without what nobody shall read.
    fn clean(&self, said: &str) -> String {
        let secrets = self.secrets.iter().map(Secret::reveal).filter(|secret| !secret.is_empty());
        let said = secrets.fold(said.to_owned(), |said, secret| {
            let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            said.replace(secret, "***").replace(&encoded, "***")
        });
        let line = said.chars().map(|c| if c.is_control() { ' ' } else { c });
        line.take(MOST_SAID).collect()
    }
}

/// A client of HTTP.
pub(super) struct Http {
    client: reqwest::Client,
    headers: HeaderMap,
    /// What errors must not repeat.
    secrets: Vec<Secret>,
}

// The client may know a proxy's password.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl Http {
    /// # Errors
    /// `Invalid` for headers that can't be sent.
    pub(super) fn new(
        headers: &[(String, Secret)],
        secrets: Vec<Secret>,
        timeouts: Timeouts,
    ) -> Result<Self> {
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let invalid = || {
                Error::new(ErrorKind::Invalid, "a header for the catalog can't be sent").with("header", name)
            };
            let key = HeaderName::try_from(name).map_err(|_| invalid())?;
            let mut value = HeaderValue::try_from(value.reveal()).map_err(|_| invalid())?;
            value.set_sensitive(true);
            sent.insert(key, value);
        }
        let client = reqwest::Client::builder()
            .user_agent(concat!("strandline/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(timeouts.connect)
            .timeout(timeouts.answer)
            // Servers end connections that were idle for half a minute; a commit should not find that out.
            .pool_idle_timeout(Duration::from_secs(15))
            // A secret goes nowhere but where it was meant to go.
            .redirect(Policy::none())
            .build();
        let client = client
            .map_err(|e| Error::new(ErrorKind::Unsupported, "no connections can be made here").because(e))?;
        Ok(Self { client, headers: sent, secrets })
    }

    /// Makes a call, again if it fails and may be repeated.
    ///
    /// # Errors
    /// `Unavailable` when no answer came; `Corrupt` when it was too large.
    pub(super) async fn send(&self, call: &Call, token: Option<&Secret>) -> Result<Answer> {
        let mut tried = 1;
        let mut wait = FIRST_WAIT;
        loop {
            let (pause, outcome) = match self.once(call, token).await {
                Ok(sent) if !call.repeatable || !is_busy(sent.answer.status) => return Ok(sent.answer),
                Ok(sent) => (sent.pause, Ok(sent.answer)),
                // Where nothing was sent nothing can happen twice.
                Err(Failed { error, never_sent })
                    if never_sent || (call.repeatable && error.is_retryable()) =>
                {
                    (None, Err(error))
                }
                Err(failed) => return Err(failed.error),
            };
            if tried == TRIES {
                return outcome;
            }
            tokio::time::sleep(pause.unwrap_or(wait).min(LONGEST_WAIT)).await;
            (tried, wait) = (tried + 1, wait * 2);
        }
    }

    async fn once(&self, call: &Call, token: Option<&Secret>) -> std::result::Result<Sent, Failed> {
        let place = place(call);
        let mut request = self.client.request(call.method.clone(), call.url.clone());
        request = request.header(ACCEPT, "application/json");
        if !call.about_tokens {
            request = request.headers(self.headers.clone());
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, body.content_type).body(body.bytes.clone());
        }
        if let Some(token) = token {
            let bearer = HeaderValue::try_from(format!("Bearer {}", token.reveal()));
            let mut bearer = bearer.map_err(|_| {
                Failed::new(Error::new(
                    ErrorKind::Invalid,
                    "the catalog's token can't be sent: it has signs that no token has",
                ))
            })?;
            bearer.set_sensitive(true);
            request = request.header(AUTHORIZATION, bearer);
        }
        let response = request.send().await.map_err(|e| unreachable_server(e, &place))?;
        let status = response.status();
        let pause = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
        let bytes = read(response, &place).await?;
        let secrets = self.secrets.iter().chain(token).cloned().collect();
        Ok(Sent {
            answer: Answer { status, bytes, place, secrets, about_tokens: call.about_tokens },
            pause: pause.map(Duration::from_secs),
        })
    }
}

struct Sent {
    answer: Answer,
    pause: Option<Duration>,
}

struct Failed {
    error: Error,
    never_sent: bool,
}

impl Failed {
    fn new(error: Error) -> Self {
        Self { error, never_sent: false }
    }
}

/// The body of an answer. Of one that is no success more than the beginning is not wanted.
async fn read(mut response: Response, place: &str) -> std::result::Result<Vec<u8>, Failed> {
    let refused = !response.status().is_success();
    let most = if refused { MOST_BYTES_OF_REFUSAL } else { MOST_BYTES };
    let too_large = || {
        let message = "the server's answer is larger than one can be";
        Failed::new(Error::new(ErrorKind::Corrupt, message).with("at", place).with("most", most))
    };
    let announced = response.content_length().unwrap_or(0);
    if !refused && announced > most as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| unreachable_server(e, place))? {
        if bytes.len() + chunk.len() > most {
            if refused {
                break;
            }
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn unreachable_server(e: reqwest::Error, place: &str) -> Failed {
    let never_sent = e.is_connect();
    let message = if never_sent {
        "the catalog's server can't be reached"
    } else if e.is_timeout() {
        "the catalog's server did not answer in time"
    } else {
        "the connection to the catalog's server broke"
    };
    let error = Error::new(ErrorKind::Unavailable, message).with("at", place).because(e.without_url());
    Failed { error, never_sent }
}

/// True when the server asks to come back later, or something between it and us does.
fn is_busy(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Method and URL without its query, which may hold what is nobody's business.
fn place(call: &Call) -> String {
    let mut url = call.url.clone();
    url.set_query(None);
    format!("{} {url}", call.method)
}
