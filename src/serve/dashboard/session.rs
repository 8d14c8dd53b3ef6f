//! Who is signed in: random names in cookies, kept in memory, bound to a key that must still be one of the door's.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

/// Browsers that are signed in at a time; the one that was away longest makes room for the next.
pub(in crate::serve) const SESSIONS_MAX: usize = 256;

/// How long a session lasts.
const LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// Cookies of one request that are looked at.
const COOKIES_MAX: usize = 64;

/// A SHA-256.
pub(in crate::serve) type Digest = [u8; 32];

/// What a session name is said to be without one, in the token of a form.
const NOBODY: &str = "nobody";

struct Session {
    /// Of the key that was shown.
    key: Digest,
    begun: Instant,
    used: Instant,
}

/// The browsers that are signed in at one door.
pub(in crate::serve) struct Sessions {
    /// By the digest of the name in the cookie: what is in memory opens no door.
    signed_in: Mutex<HashMap<Digest, Session>>,
    /// From which the tokens of forms are made.
    secret: [u8; 32],
    cookie: String,
    attributes: &'static str,
}

impl Sessions {
    /// Of the door on `port`. Doors of one host share its cookies, so each has a name of its own for them.
    pub fn new(port: u16, is_tls: bool, random: fn(&mut [u8])) -> Self {
        let mut secret = [0; 32];
        random(&mut secret);
        let attributes = match is_tls {
            true => "Path=/; HttpOnly; SameSite=Strict; Secure",
            false => "Path=/; HttpOnly; SameSite=Strict",
        };
        Self { signed_in: Mutex::default(), secret, cookie: format!("iris_session_{port}"), attributes }
    }

    /// Signs a browser in that showed a key. What it must be sent as its cookie.
    pub fn begin(&self, key: Digest, random: fn(&mut [u8])) -> String {
        self.begin_at(key, random, Instant::now())
    }

    fn begin_at(&self, key: Digest, random: fn(&mut [u8]), now: Instant) -> String {
        let mut name = [0; 32];
        random(&mut name);
        let name = hex(&name);
        let mut signed_in = self.signed_in.lock().unwrap_or_else(PoisonError::into_inner);
        signed_in.retain(|_, session| now.saturating_duration_since(session.begun) < LASTS);
        while signed_in.len() >= SESSIONS_MAX {
            let idle = signed_in.iter().min_by_key(|(_, session)| session.used).map(|(name, _)| *name);
            let Some(idle) = idle else { break };
            signed_in.remove(&idle);
        }
        signed_in.insert(digest(name.as_bytes()), Session { key, begun: now, used: now });
        format!("{}={name}; {}; Max-Age={}", self.cookie, self.attributes, LASTS.as_secs())
    }

    /// The name in a request's cookie and the key of its session, when it is one.
    pub fn find(&self, headers: &HeaderMap) -> Option<(String, Digest)> {
        self.find_at(headers, Instant::now())
    }

    fn find_at(&self, headers: &HeaderMap, now: Instant) -> Option<(String, Digest)> {
        let name = self.shown(headers)?;
        let mut signed_in = self.signed_in.lock().unwrap_or_else(PoisonError::into_inner);
        let session = signed_in.get_mut(&digest(name.as_bytes()))?;
        if now.saturating_duration_since(session.begun) >= LASTS {
            return None;
        }
        session.used = now;
        Some((name, session.key))
    }

    /// Signs out. What the browser must be sent as its cookie.
    pub fn end(&self, headers: &HeaderMap) -> String {
        if let Some(name) = self.shown(headers) {
            self.signed_in.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest(name.as_bytes()));
        }
        format!("{}=; {}; Max-Age=0", self.cookie, self.attributes)
    }

    /// What a form of this session must carry. Another site cannot read it, and that of another session is none.
    pub fn token(&self, session: Option<&str>) -> String {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        hash.update(session.unwrap_or(NOBODY).as_bytes());
        hex(&hash.finalize())
    }

    /// Whether a form carries the token of this session.
    pub fn is_token(&self, session: Option<&str>, shown: &str) -> bool {
        self.token(session).as_bytes().ct_eq(shown.as_bytes()).into()
    }

    /// The one value of our cookie; of two it is not known which counts.
    fn shown(&self, headers: &HeaderMap) -> Option<String> {
        let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = values.flat_map(|value| value.split(';')).take(COOKIES_MAX);
        let mut ours = pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            (name.trim() == self.cookie).then(|| value.trim().to_owned())
        });
        match (ours.next(), ours.next()) {
            (Some(name), None) if !name.is_empty() => Some(name),
            _ => None,
        }
    }
}

/// The digest under which a key or a session is known.
pub(in crate::serve) fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions() -> Sessions {
        Sessions::new(6920, false, crate::telemetry::random)
    }

    fn headers(cookies: &[&str]) -> HeaderMap {
        cookies.iter().map(|cookie| (COOKIE, cookie.parse().unwrap())).collect()
    }

    fn pair(cookie: &str) -> String {
        cookie.split(';').next().unwrap().to_owned()
    }

    #[test]
    fn a_cookie_is_for_this_door_alone_and_no_script_reads_it() {
        let cookie = sessions().begin([7; 32], crate::telemetry::random);
        assert!(cookie.starts_with("iris_session_6920="), "{cookie}");
        for attribute in ["; Path=/;", "; HttpOnly;", "; SameSite=Strict;", "; Max-Age=43200"] {
            assert!(cookie.contains(attribute), "{attribute} in {cookie}");
        }
        assert!(!cookie.contains("Secure"), "a browser would not send it over plain HTTP");
        let secure = Sessions::new(443, true, crate::telemetry::random).begin([7; 32], crate::telemetry::random);
        assert!(secure.contains("; Secure"), "{secure}");
    }

    #[test]
    fn a_session_is_found_by_its_cookie_until_it_ends() {
        let sessions = sessions();
        let (now, random) = (Instant::now(), crate::telemetry::random as fn(&mut [u8]));
        let ours = pair(&sessions.begin_at([7; 32], random, now));
        let sent = headers(&[&format!("other=1; {ours}")]);
        assert_eq!(sessions.find_at(&sent, now).map(|(_, key)| key), Some([7; 32]));
        assert!(sessions.find_at(&headers(&[&ours, &ours]), now).is_none(), "two of them are none");
        assert!(sessions.find_at(&headers(&[&format!("{ours}0")]), now).is_none());
        assert!(sessions.find_at(&sent, now + LASTS).is_none());
        assert!(sessions.end(&sent).contains("Max-Age=0"));
        assert!(sessions.find_at(&sent, now).is_none());
    }

    #[test]
    fn the_one_that_was_away_longest_makes_room() {
        let sessions = sessions();
        let (now, random) = (Instant::now(), crate::telemetry::random as fn(&mut [u8]));
        let first = headers(&[&pair(&sessions.begin_at([0; 32], random, now))]);
        let second = headers(&[&pair(&sessions.begin_at([1; 32], random, now + Duration::from_secs(1)))]);
        for at in 2..SESSIONS_MAX as u64 {
            sessions.begin_at([2; 32], random, now + Duration::from_secs(at));
        }
        let later = now + Duration::from_secs(1000);
        assert!(sessions.find_at(&first, later).is_some(), "it is the one used last now");
        sessions.begin_at([3; 32], random, later);
        assert!(sessions.find_at(&first, later).is_some() && sessions.find_at(&second, later).is_none());
        assert_eq!(sessions.signed_in.lock().unwrap().len(), SESSIONS_MAX);
    }

    #[test]
    fn a_form_of_another_session_is_refused() {
        let sessions = sessions();
        let token = sessions.token(Some("a"));
        assert!(sessions.is_token(Some("a"), &token));
        for (session, shown) in [(Some("b"), token.as_str()), (None, &token), (Some("a"), ""), (Some("a"), &token[1..])]
        {
            assert!(!sessions.is_token(session, shown), "{session:?} {shown}");
        }
        assert_ne!(sessions.token(None), self::sessions().token(None), "each process has a secret of its own");
    }
}
