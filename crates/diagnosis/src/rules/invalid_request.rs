//! ARM rejects the request itself.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::InvalidRequest,
    title: "ARM rejects the request itself",
    looks_like: "`InvalidParameter`, `PropertyChangeNotAllowed`, `PlatformImageNotFound`.",
    misleads: "Repeating it never helps.",
    remedy: "Read the whole message: `az monitor activity-log list -g NODE_GROUP --status Failed --offset 1h --query \"[].properties.statusMessage\"`. Correct the property that it names in the node class, machine template or pool; repeating the same request never helps. What exists: sizes `az vm list-skus -l REGION --size SIZE -o table`, images `az vm image list -l REGION -p PUBLISHER -f OFFER --all -o table` or `az sig image-version list -g GROUP -r GALLERY -i DEFINITION -o table`.",
    signs: &[
        Sign::new(105, &["invalidparameter"]),
        Sign::new(105, &["propertychangenotallowed"]),
        Sign::new(105, &["imagenotfound"]),
        Sign::new(105, &["invalidresourcereference"]),
        Sign::new(105, &["invalidrequestcontent"]),
        Sign::new(105, &["invalidrequestformat"]),
        Sign::new(105, &["linkedinvalidpropertyid"]),
        Sign::new(105, &["resourcegroupnotfound"]),
        Sign::new(105, &["vmmarketplaceinvalidinput"]),
        Sign::new(105, &["marketplacepurchaseeligibilityfailed"]),
        Sign::new(105, &["badrequest"]).weak(),
        Sign::new(105, &["changing property", "is not allowed"]),
        Sign::new(105, &["missingapiversionparameter"]),
        Sign::new(105, &["invalidtemplate"]).unless(&["invalidtemplatedeployment"]).fair(),
        Sign::new(106, &["error code: notsupported"]).fair(),
        Sign::new(106, &["is not a valid"])
            .near(&["statuscode=400", "400 bad request", "'code'"])
            .fair(),
        Sign::new(105, &["parameter", "is invalid"]).near(&["400", "'code'"]).fair(),
        Sign::new(105, &["no vm image found"]),
        Sign::new(105, &["inputerror"]).fair(),
        Sign::new(106, &["'bad request'"]).fair(),
        Sign::new(106, &["code='invalid"]).fair(),
        Sign::new(105, &["error code: invalid"]).fair(),
        Sign::new(105, &["vmsizedoesntsupport"]).fair(),
        Sign::new(105, &["skunotsupported"]).fair(),
        Sign::new(105, &["notsupported"]).unless(&["ephemeral"]).fair(),
        Sign::new(106, &["cannot be changed"]).near(&["'code'", "statuscode"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "ERROR CODE: InvalidParameter",
    leaves: "HTTP 201 Created",
}
