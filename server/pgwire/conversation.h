#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/client_encoding.h"
#include "server/pgwire/kept_bytes.h"
#include "server/pgwire/kept_rows.h"
#include "server/pgwire/messages.h"
#include "server/pgwire/sql/bound_text.h"
#include "server/pgwire/sql/prepared_text.h"
#include "server/pgwire/sql/router.h"

namespace sluice::server::pgwire {

// A statement of ours that a client wants to run, or to have described.
struct OwnStatement {
  std::string text;  // with the values of its parameters
  std::vector<uint16_t> result_formats;
  bool describe_rows = false;  // simple protocol: the rows come with their description
  uint32_t max_rows = 0;       // 0: all; else the statement is suspended after so many
  // Encoding of the texts in its rows; nullopt: UTF-8.
  std::optional<ClientEncoding> encoding = std::nullopt;
  // The columns that the client was told when it had the statement described; none: it was not.
  std::vector<WireColumn> described = {};
};

// Connects a logged-in client with its back end: passes the database's messages from one to the
// other, and answers statements of ours itself, so that each side sees a peer that keeps to the
// protocol. Pure: bytes come in through FromClient and FromServer, and go out through the host as
// whole messages or parts of them, in order. Belongs to one thread.
//
// How the two are kept apart: a statement of ours begins when the back end has answered everything
// sent to it before. Until the statement has ended, no further message of the client is read.
class Conversation {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    virtual void ToClient(std::string_view bytes) = 0;
    virtual void ToServer(std::string_view bytes) = 0;
    virtual void ToBorrower(std::string_view bytes) = 0;
    // Cancels whatever runs on the back end.
    virtual void CancelServer() = 0;
    // Answered by Says, then by Suspended or Ended. The back end is idle; `transaction`: it is
    // inside a transaction block.
    virtual void Run(const OwnStatement& statement, bool transaction) = 0;
    // Answered by Described.
    virtual void Describe(const OwnStatement& statement, bool transaction) = 0;
    // Resumes a suspended statement with another limit, or gives it up.
    virtual void Resume(uint32_t max_rows) = 0;
    virtual void GiveUp() = 0;
    // Answered by Routed, later: RouteScript of a long text, not on this thread, which serves
    // others. `prepared`: the statements of ours that EXECUTE may name.
    virtual void FindRoute(std::string sql, std::set<std::string, std::less<>> prepared) = 0;
    // Whether SET sluice.name = value is allowed.
    virtual Status CheckSetting(std::string_view set) = 0;
    // Whether so many bytes of rows may be held for the back end.
    virtual Status MayKeep(size_t bytes) = 0;
    // The client is done, or has violated the protocol.
    virtual void Close() = 0;
  };

  // `parameters`: what the back end reported at the start (ParameterStatus). `dialect`: the back
  // end's.
  Conversation(Host& host, std::map<std::string, std::string> parameters,
               catalog::Dialect dialect = catalog::Dialect::kPostgres);

  void FromClient(std::string_view bytes);
  void FromServer(std::string_view bytes);

  // Bytes from the client that wait for a statement of ours to end.
  size_t held_bytes() const { return blocked() ? held_.size() : 0; }
  // The size of the client's message of which this, or a back end in this process, has only a part
  // yet; 0: there is none.
  size_t unfinished_bytes() const;
  // The rows of a cursor or COPY that the back end has not been given yet.
  size_t kept_bytes() const;
  bool statement_runs() const { return running_; }
  bool server_owes_answer() const { return !expected_.empty(); }
  // The server has announced that it closes the connection, and why.
  bool server_has_ended() const { return server_has_ended_; }
  // Of the back end: I, T or E.
  char status() const { return status_; }
  const std::map<std::string, std::string>& parameters() const { return parameters_; }
  // Its current client_encoding: UTF8 while it is lent.
  const std::string& backend_encoding() const { return backend_encoding_; }

  void Routed(std::string sql, std::optional<Route> route);
  // Output of the statement that Run began. `bytes`: whole messages.
  void Says(std::string_view bytes);
  void Suspended();
  // The statement's error, reported to the client here; or OK, after CommandComplete.
  void Ended(const Status& status);
  // From now until TakeBack, or the statement's end, the statement has the back end's connection to
  // itself: what the back end sends goes to the borrower.
  void Lend();
  void FromBorrower(std::string_view bytes);
  void TakeBack();
  // No columns: the statement returns no rows.
  void Described(const Result<std::vector<WireColumn>>& columns);

 private:
  enum class Handling { kPass, kWhole, kDrop };
  // Which part of an answer the client receives; kRow: errors and notices, while its first row is
  // for us.
  enum class Hears { kAll, kAllButReady, kErrors, kRow, kNothing };
  // A message of this type, which the back end has yet to answer.
  struct Expected {
    char type;
    Hears hears = Hears::kAll;
    bool skipped_by_copy = false;  // a Sync that a COPY reads, and does not answer
  };
  // Steps to do one after another, each when the back end has answered everything before it.
  struct Step {
    enum class Kind {
      kOwn,         // a message of the extended protocol, for a statement of ours
      kForward,     // statements of the database, from a script that has some of ours
      kRun,         // a statement of ours from a script
      kKeep,        // the same, but its rows are kept for the database's statement around it
      kPrepare,     // PREPARE name AS a statement of ours, from a script
      kPrepared,    // PREPARE, after the database has prepared its counterpart
      kInDatabase,  // marks the prepared statement `text` as being in the database
      kExecute,     // EXECUTE of a prepared statement of ours
      kForget,      // the database has deallocated the prepared statement `text`; "": all
      kAsk,         // sends `text`, of our own, to the database
      kAskRow,      // the same; we read its row
      kGive,        // sends `text` to the database; the client receives the answer
      kSet,         // SET sluice.name from a script
      kBegin,       // begins a transaction for the script
      kCommit,      // commits it
      kRollback,    // rolls it back
      kSync,        // Sync, after ending a transaction of ours
      kSay,         // sends `text` to the client
      kError,       // sends `error`, of a script that cannot be read
      kReady,       // end of a script
    };
    Kind kind;
    char type = 0;             // kOwn
    std::string text = {};     // kOwn: the body
    Span span = {};            // of the script: kForward, kRun, kKeep, kPrepare, kExecute, kSet
    Span inside = {};          // kKeep, kPrepare: the statement of ours
    bool transaction = false;  // kForward: begins one
    bool asked = false;        // kOwn, kExecute: `answer_` is the database's
    Status error = {};
  };
  struct DescribedTarget {
    char kind;
    std::string name;
  };
  struct Prepared {
    std::string text;
    std::vector<uint32_t> types;          // of its parameters, as Parse said; 0: it did not
    std::vector<std::string> type_names;  // as PREPARE said
    std::optional<Span> inside;           // the statement of ours in a cursor or COPY
    bool prepares = false;                // PREPARE itself, with the statement of ours inside
    bool in_database = false;             // one of that name computes its arguments there
    std::vector<WireColumn> described;    // as OwnStatement has them
    KeptBytes::Charge charge = {};
    std::string OwnText() const;  // the statement of ours
  };
  struct Portal {
    std::string text;  // of the prepared statement
    std::optional<Span> inside;
    bool prepares = false;
    BoundText bound;
    OwnStatement statement;
    bool begun = false;
    bool suspended = false;
    bool done = false;
    Status failure;  // of a statement that ended while it was suspended
    KeptBytes::Charge charge = {};
  };

  struct KnownRoute {
    std::string sql;
    std::optional<Route> route;
  };

  bool blocked() const { return running_ || routing_ || !steps_.empty() || closed_; }
  size_t Consume(std::string_view bytes);
  Handling HandlingOf(char type) const;
  void Account(char type);
  // Takes a whole message; false: it is for the database.
  bool Take(char type, std::string_view body);
  bool TakeQuery(std::string_view body);
  bool TakeParse(std::string_view body);
  bool HasInDatabase(std::string_view name) const;
  bool ClosesInDatabase(std::string_view body);
  std::optional<Route> RouteOf(std::string_view sql) const;
  bool RoutesAside(char type, std::string_view body);
  bool IsPreparedWhole(std::string_view name) const;
  bool IsOwn(char type, std::string_view body) const;
  // The client's text in UTF-8, and the encoding that the back end uses now.
  Result<std::string> Utf8Of(std::string_view text) const;
  Result<std::string> ForServer(std::string_view utf8) const;
  void SeeParameter(std::string_view body);
  void FindEncoding();
  static bool Borrows(const Step& step);
  bool SwitchEncoding(bool borrows);
  void QueueParts(const std::vector<Part>& parts);
  // Starts on steps that were queued.
  void Begin();
  void Advance();
  void Perform(const Step& step);
  void PerformOwn(const Step& step);
  void ParseOwn(const Step& step);
  void BindOwn(const Step& step);
  void DescribeOwn(std::string_view body);
  void ExecuteOwn(std::string_view body);
  void CloseOwn(std::string_view body);
  void Forward(const Span& span);
  void BeginOwn(const OwnStatement& statement);
  // The rows of a cursor or COPY, kept until they are given to the database.
  struct Keeping {
    KeptRows rows;
    std::string before, after;  // of the database's statement around it
  };
  void PrepareOwn(const Step& step);
  void RegisterPrepared(const Step& step);
  void ForgetPrepared(std::string_view name);
  void AskForArguments(const Span& execute, Step again);
  Result<BoundText> ExecutedText(const Span& execute);
  void AskForTexts(const std::vector<size_t>& which, const Prepared& prepared,
                   const BindMessage& message, Step again);
  ShownParameters TakeTexts(const std::vector<size_t>& which);
  bool BeginForPipeline(const Step& again);
  bool AsksForRow() const {
    return !lent_ && !expected_.empty() && expected_.front().hears == Hears::kRow;
  }
  bool PassesRows() const;
  void TakeAnswer(char type, std::string_view body);
  void ExecutePrepared(const Step& step);
  void KeepStep(const Step& step);
  void Keep(const OwnStatement& statement, const Span& whole, const Span& inside);
  void GiveKept(const Keeping& keeping);
  void GiveUpKeeping(const Status& error);
  void DescribeBound(const OwnStatement& statement, std::string text, BoundText bound);
  void ReplyDescription(const std::vector<WireColumn>& columns);
  static Status AbortedBlock();
  void Fail(const Status& error);
  void AbortScript();
  void AbortFailed();
  void Sync();
  void AskOurs(std::string_view sql, Hears hears = Hears::kNothing);
  void KeepAwake();
  void DropPortal(std::string_view name);
  void DropPortals();
  void ProtocolError(std::string_view message);
  void SeeTag(std::string_view body);
  // Reads a message from the server; `body` for Z, S and C only. False: do not pass it to the
  // client.
  bool SeeServer(char type, std::string_view body);
  void SeeLent(char type, std::string_view message);
  void SeeCopyBegin();
  // False: how the server goes on cannot be known.
  bool SeeCopyEnd(bool failed);
  bool SeeReady(char status);
  bool SeeError();
  bool Answered(std::string_view types);
  void ProcessHeld();
  void Expect(char type, Hears hears) { expected_.push_back({type, hears}); }
  void Reply(std::string_view bytes);

  Host& host_;
  std::map<std::string, std::string> parameters_;
  const catalog::Dialect dialect_;
  bool readable_ = true;  // our lexer reads a text as the database does
  // The client's; nullopt: UTF-8, or one that the server does not convert.
  std::optional<ClientEncoding> encoding_;
  std::string backend_encoding_;
  int switched_ = 0;  // how often the back end was asked for an encoding other than the client's
  bool closed_ = false;

  // From the client.
  std::string held_;
  size_t passed_on_ = 0;    // the size of the message that client_left_ belongs to
  size_t wanted_ = 0;       // bytes of held_ needed before the next message can be read
  size_t client_left_ = 0;  // bytes left of a message that is being passed on or dropped
  bool client_drops_ = false;

  // From the back end.
  std::string server_held_;  // the beginning of a message
  size_t server_left_ = 0;
  bool server_drops_ = false;
  std::string said_;  // our output, until a back end's message ends
  char status_ = 'I';
  std::deque<Expected> expected_;
  bool copying_in_ = false;  // the client sends rows
  // A COPY has begun, and not been answered; whether rows were sent to it, and a Sync among them.
  bool copy_open_ = false;
  bool copy_has_rows_ = false;
  bool copy_has_sync_ = false;

  // State of a loan of the back end.
  bool lent_ = false;
  std::string borrower_held_;  // the beginning of a message
  size_t borrower_left_ = 0;
  bool borrower_copies_ = false;  // it owes the back end a CopyDone
  int borrowers_queries_ = 0;     // not yet answered with ReadyForQuery

  // The group: the extended protocol's messages up to Sync.
  bool group_open_ = false;    // something has been passed on since the last Sync
  bool group_dirty_ = false;   // something in it was executed
  bool group_failed_ = false;  // it failed: everything up to Sync is skipped
  bool flushed_ = false;

  std::deque<Step> steps_;
  bool running_ = false;                   // a statement of ours
  bool routing_ = false;                   // the host finds the route of the next message
  std::optional<KnownRoute> known_route_;  // of that message, until it is done with
  bool server_has_ended_ = false;
  bool in_script_ = false;  // simple protocol
  bool wrapped_ = false;    // we began the transaction block, for a script or a pipeline
  std::string script_;      // text that places in errors refer to
  int64_t place_ = 0;       // place of the running statement, in script_
  BoundText bound_;         // its text with its parameters' values
  std::optional<DescribedTarget> describing_;
  std::optional<Keeping> keeping_;
  int kept_ = 0;  // number of times
  std::optional<AnsweredRow> answer_;
  std::string running_portal_;

  KeptBytes kept_bytes_;  // by the following
  std::map<std::string, Prepared, std::less<>> statements_;
  std::map<std::string, Portal, std::less<>> portals_;
};

}  // namespace sluice::server::pgwire
