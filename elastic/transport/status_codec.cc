#include "elastic/transport/status_codec_internal.h"

namespace sluice::elastic {

void ToProto(const Status& status, StatusProto* proto) {
  for (const Diagnostic& diagnostic : status.diagnostics()) {
    WriteDiagnostic(diagnostic, proto->add_diagnostics());
  }
}

Status FromProto(const StatusProto& proto) {
  Status status;
  for (const StatusProto::Diagnostic& diagnostic : proto.diagnostics()) {
    status.Add(ReadDiagnostic(diagnostic));
  }
  return status;
}

}  // namespace sluice::elastic
