//! The methods that are served, and in which era.

use majordomus_capability::project::mcp::Era;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Initialize,
    Ping,
    Discover,
    ListTools,
    CallTool,
    ListResources,
    ListTemplates,
    ReadResource,
    ListPrompts,
    GetPrompt,
    Complete,
    Subscribe,
    Unsubscribe,
    Listen,
}

impl Method {
    /// The table: each with its name and the eras that have it.
    const ALL: [(Self, &'static str, &'static [Era]); 14] = [
        (Self::Initialize, "initialize", &[Era::Legacy]),
        (Self::Ping, "ping", &[Era::Legacy]),
        (Self::Discover, "server/discover", &[Era::Modern]),
        (Self::ListTools, "tools/list", BOTH),
        (Self::CallTool, "tools/call", BOTH),
        (Self::ListResources, "resources/list", BOTH),
        (Self::ListTemplates, "resources/templates/list", BOTH),
        (Self::ReadResource, "resources/read", BOTH),
        (Self::ListPrompts, "prompts/list", BOTH),
        (Self::GetPrompt, "prompts/get", BOTH),
        (Self::Complete, "completion/complete", BOTH),
        (Self::Subscribe, "resources/subscribe", &[Era::Legacy]),
        (Self::Unsubscribe, "resources/unsubscribe", &[Era::Legacy]),
        (Self::Listen, "subscriptions/listen", &[Era::Modern]),
    ];

    /// The method of that name in that era.
    pub(crate) fn named(era: Era, name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, known, eras)| *known == name && eras.contains(&era)).map(|(method, ..)| *method)
    }
}

const BOTH: &[Era] = &[Era::Legacy, Era::Modern];
