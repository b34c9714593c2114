#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "base/utf8.h"
#include "server/config/terminal.h"
#include "server/gateway/client_login_internal.h"
#include "server/gateway/client_stream_internal.h"
#include "server/gateway/first_messages.h"
#include "server/gateway/strangers.h"
#include "server/statements/statement.h"

// Include after our own headers: Abseil tolerates macros of base/mutex.h that are already defined.
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/support/sync_stream.h>

namespace sluice::server {

class GatewayScripts;

// A call that streams `Update`s, for its ClientStream; the handler owns both arguments.
template <typename Request, typename Update>
ClientStream::Call CallOf(grpc::ServerContext* context,
                          grpc::ServerSplitStreamer<Request, Update>* call) {
  return {[call](const google::protobuf::Message& update) {
            return call->Write(static_cast<const Update&>(update), grpc::WriteOptions());
          },
          [context] { context->TryCancel(); }, [context] { return context->IsCancelled(); }};
}

// gRPC answers a message that it cannot parse with INTERNAL, unless the handler parses it itself.
// Here it does, so that a script that is not UTF-8 reaches the parser, which reports the place.
template <typename Request, typename Update>
Status ReadRequest(grpc::ServerContext* context, grpc::ServerSplitStreamer<Request, Update>* call,
                   FirstMessages& first, Request* request,
                   const std::string& (Request::*script)() const) {
  const FirstMessages::Wait wait =
      first.Begin(AddressOf(context->peer()), [context] { context->TryCancel(); });
  if (call->Read(request) || ValidUtf8((request->*script)()) != (request->*script)()) {
    return OkStatus();
  }
  return InvalidArgument("the request cannot be read: its texts are to be UTF-8").SqlState("22021");
}

// Whom a call comes from, by its metadata; nothing is checked.
Result<Login> SentLogin(const grpc::ServerContext& context, bool encrypted);
// Checks the login if the client's connection has had none yet, since only then it may send much.
// Errors as for SourcePool::Acquire.
Status AdmitStranger(const grpc::ServerContext& context, const Login& login,
                     GatewayScripts& scripts, Strangers& strangers);

// Tells the client's stream of statements that start, and of those that end well.
template <typename Sink>
StatementObserver ObserverFor(Sink& sink) {
  return {[&sink](const parser::Statement& statement) {
            sink.Started(statement);
            return OkStatus();
          },
          [&sink](std::string_view sql, double seconds, const Status& outcome) {
            if (outcome.ok()) {
              sink.Ended(sql, seconds);
            }
          }};
}

// The two gRPC services over the same scripts. The arguments outlive them.
std::unique_ptr<grpc::Service> MakeGatewayService(GatewayScripts& scripts, FirstMessages& first,
                                                  Strangers& strangers);
std::unique_ptr<grpc::Service> MakeSqlflowService(GatewayScripts& scripts, FirstMessages& first,
                                                  Strangers& strangers);

}  // namespace sluice::server
