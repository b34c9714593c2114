#include <utility>

#include "server/pgwire/session_internal.h"

// A session whose back end is in this process.
namespace sluice::server::pgwire {

void WireSession::OpenEmbedded() {
  EmbeddedLink::Open(*house_.embedded, startup_, AsAudited(),
                     [weak = weak_from_this()](Result<std::unique_ptr<EmbeddedLink>> link) {
                       const auto self = weak.lock();
                       if (self == nullptr || self->state_ != State::kConnecting) {
                         return;
                       }
                       if (!link.ok()) {
                         self->Refuse(self->RecordLogin(link.status()));
                         return;
                       }
                       FirstWords greeting;
                       greeting.process = self->house_.embedded->NextProcess();
                       const Status admitted = self->Admitted(
                           self->house_.client_login != ClientLogin::kTrusted, greeting.process);
                       if (!admitted.ok()) {
                         self->Refuse(admitted);
                         return;
                       }
                       for (const auto& [name, value] : (*link)->parameters()) {
                         AppendParameterStatus(greeting.messages, name, value);
                         greeting.parameters[name] = value;
                       }
                       self->embedded_ = link->get();
                       self->server_ = *std::move(link);
                       self->Ready(std::move(greeting));
                     });
}

void WireSession::BeforeOwn(StatementRequest request, OwnMayRun then) {
  if (embedded_ == nullptr) {
    then(OkStatus(), std::move(request));
    return;
  }
  const std::string text = request.statement.text;
  embedded_->LetOthersWork(text, [request = std::move(request), then = std::move(then)](
                                     const Status& status, std::vector<std::string> settings) {
    StatementRequest ready = request;
    ready.settings = std::move(settings);
    then(status, std::move(ready));
  });
}

}  // namespace sluice::server::pgwire
