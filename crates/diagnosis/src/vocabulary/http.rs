//! HTTP statuses, in the notations of curl, wget, oras, Go, Python, Java, .NET, PowerShell and scripts, and
//! the same in words.

use crate::fault::{Fault, Idiom};

/// The notations of one status.
macro_rules! notations {
    ($($fault:ident $code:literal $words:literal;)*) => {
        pub(super) static IDIOMS: &[Idiom] = &[
            $(
                Idiom::new(Fault::$fault, &[concat!($code, " ", $words)]),
                Idiom::new(Fault::$fault, &[concat!("http/1.1 ", $code)]).unless(&[concat!("http/1.1 ", $code, "0"), concat!("http/1.1 ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("http/1.0 ", $code)]).unless(&[concat!("http/1.0 ", $code, "0"), concat!("http/1.0 ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("http/2 ", $code)]).unless(&[concat!("http/2 ", $code, "0"), concat!("http/2 ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("http ", $code)]).unless(&[concat!("http ", $code, "0"), concat!("http ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("http error ", $code)]).unless(&[concat!("http error ", $code, "0"), concat!("http error ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("http status ", $code)]).unless(&[concat!("http status ", $code, "0"), concat!("http status ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("http status: ", $code)]).unless(&[concat!("http status: ", $code, "0"), concat!("http status: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("http status code ", $code)]).unless(&[concat!("http status code ", $code, "0"), concat!("http status code ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("status code ", $code)]).unless(&[concat!("status code ", $code, "0"), concat!("status code ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("status code: ", $code)]).unless(&[concat!("status code: ", $code, "0"), concat!("status code: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("status code = '", $code)]).unless(&[concat!("status code = '", $code, "0"), concat!("status code = '", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("status_code=", $code)]).unless(&[concat!("status_code=", $code, "0"), concat!("status_code=", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("status_code: ", $code)]).unless(&[concat!("status_code: ", $code, "0"), concat!("status_code: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("statuscode=", $code)]).unless(&[concat!("statuscode=", $code, "0"), concat!("statuscode=", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("statuscode: ", $code)]).unless(&[concat!("statuscode: ", $code, "0"), concat!("statuscode: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("'statuscode':", $code)]).unless(&[concat!("'statuscode':", $code, "0"), concat!("'statuscode':", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("status=", $code)]).unless(&[concat!("status=", $code, "0"), concat!("status=", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("http_code=", $code)]).unless(&[concat!("http_code=", $code, "0"), concat!("http_code=", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("http code ", $code)]).unless(&[concat!("http code ", $code, "0"), concat!("http code ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("response code ", $code)]).unless(&[concat!("response code ", $code, "0"), concat!("response code ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("response code: ", $code)]).unless(&[concat!("response code: ", $code, "0"), concat!("response code: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("response: ", $code)]).unless(&[concat!("response: ", $code, "0"), concat!("response: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("response ", $code)]).unless(&[concat!("response ", $code, "0"), concat!("response ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("response status: ", $code)]).unless(&[concat!("response status: ", $code, "0"), concat!("response status: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("returned ", $code)]).unless(&[concat!("returned ", $code, "0"), concat!("returned ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("returned error: ", $code)]).unless(&[concat!("returned error: ", $code, "0"), concat!("returned error: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("returned status ", $code)]).unless(&[concat!("returned status ", $code, "0"), concat!("returned status ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("returned http ", $code)]).unless(&[concat!("returned http ", $code, "0"), concat!("returned http ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("returned code ", $code)]).unless(&[concat!("returned code ", $code, "0"), concat!("returned code ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("server returned ", $code)]).unless(&[concat!("server returned ", $code, "0"), concat!("server returned ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("error ", $code)]).unless(&[concat!("error ", $code, "0"), concat!("error ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("error: ", $code)]).unless(&[concat!("error: ", $code, "0"), concat!("error: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("error: (", $code, ")")]).unless(&[concat!("error: (", $code, ")", "0"), concat!("error: (", $code, ")", ".")]),
                Idiom::new(Fault::$fault, &[concat!("error:", $code)]).unless(&[concat!("error:", $code, "0"), concat!("error:", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("=> ", $code)]).unless(&[concat!("=> ", $code, "0"), concat!("=> ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("-> ", $code)]).unless(&[concat!("-> ", $code, "0"), concat!("-> ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("(", $code, ")")]),
                Idiom::new(Fault::$fault, &[concat!("failed: ", $code)]).unless(&[concat!("failed: ", $code, "0"), concat!("failed: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("got ", $code)]).unless(&[concat!("got ", $code, "0"), concat!("got ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("received ", $code)]).unless(&[concat!("received ", $code, "0"), concat!("received ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("with ", $code)]).unless(&[concat!("with ", $code, "0"), concat!("with ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("code=", $code)]).unless(&[concat!("code=", $code, "0"), concat!("code=", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("code: ", $code)]).unless(&[concat!("code: ", $code, "0"), concat!("code: ", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("actual=", $code)]).unless(&[concat!("actual=", $code, "0"), concat!("actual=", $code, ".")]),
                Idiom::new(Fault::$fault, &[concat!("last status ", $code)]).unless(&[concat!("last status ", $code, "0"), concat!("last status ", $code, ".")]),
            )*
            Idiom::new(Fault::Unauthorized, &["authentication required"]).unless(&["proxy authentication"]),
            Idiom::new(Fault::Unauthorized, &["unauthorized: "]),
            Idiom::new(Fault::Unauthorized, &[": unauthorized"]),
            Idiom::new(Fault::NotFound, &["manifest unknown"]),
            Idiom::new(Fault::NotFound, &["manifest_unknown"]),
            Idiom::new(Fault::NotFound, &["name_unknown"]),
            Idiom::new(Fault::NotFound, &["name unknown"]),
            Idiom::new(Fault::NotFound, &["blob_unknown"]),
            Idiom::new(Fault::NotFound, &["blob unknown"]),
            Idiom::new(Fault::NotFound, &["tag does not exist"]),
            Idiom::new(Fault::NotFound, &["blobnotfound"]),
            Idiom::new(Fault::Throttled, &["toomanyrequests:"]),
            Idiom::new(Fault::Throttled, &["rate limit exceeded"]),
            Idiom::new(Fault::Throttled, &["rate limited"]),
        ];
    };
}

notations! {
    BadRequest 400 "bad request";
    Unauthorized 401 "unauthorized";
    Forbidden 403 "forbidden";
    NotFound 404 "not found";
    ProxyUnauthorized 407 "proxy authentication required";
    Throttled 429 "too many requests";
    ServerError 500 "internal server error";
    ServerError 502 "bad gateway";
    ServerError 503 "service unavailable";
    ServerError 504 "gateway time";
}
