//! What can be read.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::complete::complete;
use super::{Revision, Tools, list_of};
use crate::context::Context;
use crate::descriptor::Reach;
use crate::refusal::{Code, Refusal};
use crate::resource::{Contents, Resource};

/// Says why nothing was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Nothing has that URI.
    NotFound(String),
    /// It cannot be read now.
    Failed(Refusal),
}

impl Tools {
    /// The result of `resources/list` in that revision: what has a URI of its own.
    #[must_use]
    pub fn resources(&self, revision: Revision) -> &RawValue {
        self.lists[revision as usize].resources.get_or_init(|| {
            let fixed = self.registry.resources().iter().filter(|one| !one.is_template());
            list_of(revision, "resources", fixed.map(|one| entry(one, "uri", revision)).collect())
        })
    }

    /// The result of `resources/templates/list` in that revision.
    #[must_use]
    pub fn templates(&self, revision: Revision) -> &RawValue {
        self.lists[revision as usize].templates.get_or_init(|| {
            let templates = self.registry.resources().iter().filter(|one| one.is_template());
            list_of(revision, "resourceTemplates", templates.map(|one| entry(one, "uriTemplate", revision)).collect())
        })
    }

    /// What a URI names, and the value that it gives a template's parameter.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<(&Resource, String)> {
        self.registry.resources().iter().find_map(|one| Some((one, one.value(uri)?)))
    }

    /// Whether reading it may take a disk.
    #[must_use]
    pub fn read_may_wait(&self, uri: &str) -> bool {
        self.resource(uri).is_some_and(|(resource, _)| resource.reach == Reach::Repository)
    }

    /// The result of `resources/read` in that revision.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read(&self, context: &Context, revision: Revision, uri: &str) -> Result<String, ReadError> {
        let unknown = || ReadError::NotFound("there is nothing to read at this URI".into());
        let (resource, value) = self.resource(uri).ok_or_else(unknown)?;
        let contents = (resource.read)(context, &value).map_err(|refusal| match refusal.code {
            Code::NotFound | Code::InvalidInput => ReadError::NotFound(refusal.message),
            Code::Refused | Code::Forbidden | Code::Conflict | Code::Unavailable | Code::Internal => {
                ReadError::Failed(refusal)
            }
        })?;
        let mut content = json!({ "uri": uri, "mimeType": resource.mime_type });
        match contents {
            Contents::Text(text) => content["text"] = text.into(),
            Contents::Blob(base64) => content["blob"] = base64.into(),
        }
        let result = json!({ "contents": [content] }).to_string();
        Ok(complete(revision, Some(resource.kept), &result).into_owned())
    }
}

fn entry(resource: &Resource, uri: &str, revision: Revision) -> Value {
    let mut entry = json!({ uri: resource.uri, "name": resource.name });
    if revision.has_titles() {
        entry["title"] = resource.title.into();
    }
    entry["description"] = resource.description.into();
    entry["mimeType"] = resource.mime_type.into();
    entry
}
