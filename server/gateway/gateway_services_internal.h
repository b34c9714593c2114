#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "server/config/terminal.h"
#include "server/gateway/client_stream_internal.h"

// After ours: Abseil may define the annotation macros of base/mutex.h once more.
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/support/sync_stream.h>

namespace sluice::server {

class GatewayScripts;

// A call that streams `Update`s, for its ClientStream; both are the handler's own.
template <typename Request, typename Update>
ClientStream::Call CallOf(grpc::ServerContext* context,
                          grpc::ServerSplitStreamer<Request, Update>* call) {
  return {[call](const google::protobuf::Message& update) {
            return call->Write(static_cast<const Update&>(update), grpc::WriteOptions());
          },
          [context] { context->TryCancel(); }, [context] { return context->IsCancelled(); }};
}

// A message that cannot be read is gRPC's INTERNAL, unless who answers the call reads it himself:
// then a script that is not UTF-8 goes to the parser, which says so with its place.
template <typename Request, typename Update>
Status ReadRequest(grpc::ServerSplitStreamer<Request, Update>* call, Request* request,
                   const std::string& (Request::*script)() const) {
  if (call->Read(request) || ValidUtf8((request->*script)()) != (request->*script)()) {
    return OkStatus();
  }
  return InvalidArgument("the request cannot be read: its texts are to be UTF-8").SqlState("22021");
}

// The two doors over the same scripts. `scripts` outlives them.
std::unique_ptr<grpc::Service> MakeGatewayService(GatewayScripts& scripts);
std::unique_ptr<grpc::Service> MakeSqlflowService(GatewayScripts& scripts);

}  // namespace sluice::server
