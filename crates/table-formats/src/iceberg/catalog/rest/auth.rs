//! Who asks? A bearer token, given or got with a credential by OAuth2's client credentials.
//!
//! The grant is RFC 6749, 4.4: <https://www.rfc-editor.org/rfc/rfc6749#section-4.4>.

use std::{fmt, time::Duration};

use reqwest::{Method, StatusCode};
use tokio::{sync::Mutex, time::Instant};
use url::Url;

use super::{
    http::{Answer, Call, Http},
    secret::Secret,
    wire,
};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// A token is fetched anew this long before it ends, or at half of its time if that is later.
const MARGIN: Duration = Duration::from_mins(1);

/// How a client shows who it is.
#[derive(Debug, Clone, Default)]
pub enum Auth {
    /// It does not.
    #[default]
    None,
    /// By a token that somebody else got for it. When it ends, so does the access.
    Bearer(Secret),
    /// By tokens that it gets with a credential, each before the one ends.
    Client(Box<Client>),
}

/// What tokens are got with.
#[derive(Debug, Clone)]
pub struct Client {
    /// The client's id, where it has one.
    pub id: Option<String>,
    /// Its secret.
    pub secret: Secret,
    /// What it wants to be allowed.
    pub scope: String,
    /// The token server; without one the catalog is its own.
    pub server: Option<String>,
    /// More that the token server wants to know, such as `audience` and `resource`.
    pub more: Vec<(String, String)>,
}

/// Tokens, as long as they hold.
pub(super) struct Tokens {
    auth: Auth,
    own_server: Url,
    current: Mutex<Option<Current>>,
}

#[derive(Clone)]
struct Current {
    token: Secret,
    until: Option<Instant>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("auth", &self.auth).finish_non_exhaustive()
    }
}

impl Tokens {
    pub(super) fn new(auth: Auth, own_server: Url) -> Self {
        Self { auth, own_server, current: Mutex::new(None) }
    }

    /// A token that holds, if there is to be one. One is fetched at a time, for all that wait for it.
    ///
    /// # Errors
    /// `Invalid` when the token server refuses the credential, `Unavailable`.
    pub(super) async fn token(&self, http: &Http) -> Result<Option<Secret>> {
        let client = match &self.auth {
            Auth::None => return Ok(None),
            Auth::Bearer(token) => return Ok(Some(token.clone())),
            Auth::Client(client) => client,
        };
        let mut current = self.current.lock().await;
        let now = Instant::now();
        if let Some(current) = current.as_ref().filter(|c| c.until.is_none_or(|until| now < until)) {
            return Ok(Some(current.token.clone()));
        }
        let fetched = self.fetch(http, client).await?;
        Ok(Some(current.insert(fetched).token.clone()))
    }

    /// Forgets a token that the catalog does not take any more; true when another one can be had.
    pub(super) async fn forget(&self, refused: Option<&Secret>) -> bool {
        if !matches!(self.auth, Auth::Client(_)) {
            return false;
        }
        let mut current = self.current.lock().await;
        // Somebody else may have a new one already.
        if current.as_ref().map(|c| &c.token) == refused {
            *current = None;
        }
        true
    }

    async fn fetch(&self, http: &Http, client: &Client) -> Result<Current> {
        let server = match &client.server {
            Some(server) => super::parse_url(server, "oauth2-server-uri")?,
            None => self.own_server.clone(),
        };
        let mut form = vec![("grant_type", "client_credentials"), ("client_secret", client.secret.reveal())];
        form.extend(client.id.as_deref().map(|id| ("client_id", id)));
        form.push(("scope", &client.scope));
        form.extend(client.more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let asked = Instant::now();
        // To get a second token does no harm.
        let call = Call::new(Method::POST, server).form(body).repeatable().about_tokens();
        let answer = http.send(&call, None).await?;
        if !answer.status.is_success() {
            return Err(refusal(&answer));
        }
        let token: wire::Token = answer.json("a token")?;
        if token.token_type.as_deref().is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            let message = "the token server gives tokens that are not bearer tokens";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let life = token.expires_in.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        // A life beyond what can be counted is one without end.
        let until = life.and_then(|life| asked.checked_add(life.saturating_sub(MARGIN).max(life / 2)));
        Ok(Current { token: Secret::from(token.access_token), until })
    }
}

fn refusal(answer: &Answer) -> Error {
    let said = answer.parse::<wire::TokenRefusal>().map(|refusal| {
        let parts = [refusal.error, refusal.error_description];
        parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    });
    let (kind, message) = match answer.status {
        StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            (ErrorKind::Invalid, "the token server refuses the credential")
        }
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            (ErrorKind::Unavailable, "the token server did not give a token")
        }
        _ => (ErrorKind::Invalid, "there is no token server: check `oauth2-server-uri`"),
    };
    answer.error(kind, message, said.filter(|said| !said.is_empty()))
}
