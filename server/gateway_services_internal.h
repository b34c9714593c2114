#pragma once

#include <memory>

#include "server/client_stream_internal.h"

// After ours: Abseil may define the annotation macros of base/mutex.h once more.
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/service_type.h>

namespace sluice::server {

class GatewayScripts;

// A call that streams `Update`s, for its ClientStream; both are the handler's own.
template <typename Update>
ClientStream::Call CallOf(grpc::ServerContext* context, grpc::ServerWriter<Update>* writer) {
  return {[writer](const google::protobuf::Message& update) {
            return writer->Write(static_cast<const Update&>(update));
          },
          [context] { context->TryCancel(); }, [context] { return context->IsCancelled(); }};
}

// The two doors over the same scripts. `scripts` outlives them.
std::unique_ptr<grpc::Service> MakeGatewayService(GatewayScripts& scripts);
std::unique_ptr<grpc::Service> MakeSqlflowService(GatewayScripts& scripts);

}  // namespace sluice::server
