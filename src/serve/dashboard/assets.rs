//! What pages load: one style sheet, one script, one icon. Their names change with what is in them, so that a browser may
//! keep them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// Where they are.
pub(super) const FOLDER: &str = "/assets/";

const STYLE: &[u8] = include_bytes!("assets/style.css");
const SCRIPT: &[u8] = include_bytes!("assets/refresh.js");
const ICON: &[u8] = include_bytes!("assets/icon.svg");

/// The addresses of all.
pub(super) struct Names {
    /// The style sheet.
    pub style: String,
    /// The script.
    pub script: String,
    /// The icon.
    pub icon: String,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let name = |stem: &str, ending: &str, bytes: &[u8]| {
        let digest = Sha256::digest(bytes);
        let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{FOLDER}{stem}.{hash}.{ending}")
    };
    Names { style: name("style", "css", STYLE), script: name("refresh", "js", SCRIPT), icon: name("icon", "svg", ICON) }
});

/// The addresses of all.
pub(super) fn names() -> &'static Names {
    &NAMES
}

/// Serves one by its name.
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let names = names();
    let known = [
        (&names.style, "text/css; charset=utf-8", STYLE),
        (&names.script, "text/javascript; charset=utf-8", SCRIPT),
        (&names.icon, "image/svg+xml", ICON),
    ];
    let found = known.into_iter().find(|(address, _, _)| address.strip_prefix(FOLDER) == Some(name.as_str()));
    let Some((_, kind, bytes)) = found else {
        return (StatusCode::NOT_FOUND, "no such file").into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
    ];
    (headers, bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_stays_small_and_nothing_is_loaded_from_elsewhere() {
        let script = std::str::from_utf8(SCRIPT).unwrap();
        assert!(script.lines().count() < 60);
        for asset in [STYLE, SCRIPT] {
            let text = std::str::from_utf8(asset).unwrap();
            assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("url("));
        }
    }
}
