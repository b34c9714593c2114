#pragma once

#include "base/error_code.h"
#include "base/status.h"
#include "elastic/transport/status.pb.h"

// The form in which a Status is sent.
namespace sluice::elastic {

void ToProto(const Status& status, StatusProto* proto);
Status FromProto(const StatusProto& proto);

// One diagnostic, in any message with the fields of StatusProto.Diagnostic: that one, and the
// public one (sluice.v1.Diagnostic).
template <typename Message>
void WriteDiagnostic(const Diagnostic& diagnostic, Message* message) {
  message->set_code(static_cast<int>(diagnostic.code));
  message->set_sqlstate(diagnostic.sqlstate);
  message->set_message(diagnostic.message);
  message->set_detail(diagnostic.detail);
  message->set_hint(diagnostic.hint);
  message->set_span_begin(diagnostic.span.begin);
  message->set_span_end(diagnostic.span.end);
}

template <typename Message>
Status ReadDiagnostic(const Message& message) {
  constexpr size_t kSqlStateLength = 5;
  Status status(ErrorCode(message.code()), message.message());
  if (message.sqlstate().size() == kSqlStateLength) {  // otherwise the default of the code
    status = std::move(status).SqlState(message.sqlstate());
  }
  return std::move(status)
      .Detail(message.detail())
      .Hint(message.hint())
      .At({message.span_begin(), message.span_end()});
}

}  // namespace sluice::elastic
