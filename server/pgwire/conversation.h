#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/bound_text.h"
#include "server/pgwire/client_encoding.h"
#include "server/pgwire/kept_rows.h"
#include "server/pgwire/messages.h"
#include "server/pgwire/prepared_text.h"
#include "server/pgwire/router.h"

namespace sluice::server::pgwire {

// A statement of ours that a client wants run, or described.
struct OwnStatement {
  std::string text;  // with the values of its parameters
  std::vector<uint16_t> result_formats;
  bool describe_rows = false;  // simple protocol: the rows come with their description
  uint32_t max_rows = 0;       // 0: all; else it is suspended after so many
  // Of the texts in its rows; nullopt: UTF-8.
  std::optional<ClientEncoding> encoding = std::nullopt;
};

// A logged-in client and its back end: copies what is the database's from one to the other, and
// answers what is ours in its place, so that each sees a server, or a client, that keeps the
// protocol. Pure: bytes come in by FromClient and FromServer, and go out through the host, whole
// messages or parts of them, in order. Belongs to one thread.
//
// How the two are kept apart: a statement of ours begins when the back end has answered all that
// was sent to it before. Until it has ended no further message of the client is looked at.
class Conversation {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    virtual void ToClient(std::string_view bytes) = 0;
    virtual void ToServer(std::string_view bytes) = 0;
    virtual void ToBorrower(std::string_view bytes) = 0;
    // Whatever runs on the back end is to end.
    virtual void CancelServer() = 0;
    // Answered by Says, and then by Suspended or Ended. The back end is idle; `transaction`: inside
    // a transaction block.
    virtual void Run(const OwnStatement& statement, bool transaction) = 0;
    // Answered by Described.
    virtual void Describe(const OwnStatement& statement, bool transaction) = 0;
    // A statement that was suspended goes on, with another limit, or is given up.
    virtual void Resume(uint32_t max_rows) = 0;
    virtual void GiveUp() = 0;
    // SET sluice.name = value: whether it may be.
    virtual Status CheckSetting(std::string_view set) = 0;
    // The client is done, or does not keep to the protocol.
    virtual void Close() = 0;
  };

  // `parameters`: what the back end has said of itself at the start (ParameterStatus).
  // `dialect`: the back end's.
  Conversation(Host& host, std::map<std::string, std::string> parameters,
               catalog::Dialect dialect = catalog::Dialect::kPostgres);

  void FromClient(std::string_view bytes);
  void FromServer(std::string_view bytes);

  // So much of what the client has sent waits for a statement of ours to end.
  size_t held_bytes() const { return blocked() ? held_.size() : 0; }
  bool statement_runs() const { return running_; }
  // Of the back end: I, T, E.
  char status() const { return status_; }
  const std::map<std::string, std::string>& parameters() const { return parameters_; }
  // What its client_encoding is now: while it is lent, UTF8.
  const std::string& backend_encoding() const { return backend_encoding_; }

  // Of the statement that Run began. `bytes`: whole messages.
  void Says(std::string_view bytes);
  void Suspended();
  // Its error, told here, or OK when CommandComplete has been said.
  void Ended(const Status& status);
  // From now until TakeBack, or its end, the statement has the back end's connection for itself:
  // what the back end says goes to the borrower.
  void Lend();
  void FromBorrower(std::string_view bytes);
  void TakeBack();
  // No columns: it answers without rows.
  void Described(const Result<std::vector<WireColumn>>& columns);

 private:
  enum class Wish { kPass, kWhole, kDrop };
  // What the client hears of an answer; kRow: its errors and notices, as its first row is for us.
  enum class Hears { kAll, kAllButReady, kErrors, kRow, kNothing };
  // What the back end still has to answer: a message of this type.
  struct Expected {
    char type;
    Hears hears = Hears::kAll;
  };
  // What has to be done one after another, each when the back end has answered everything.
  struct Step {
    enum class Kind {
      kOwn,         // a message of the extended protocol that is ours
      kForward,     // statements of the database, out of a script that has some of ours
      kRun,         // a statement of ours out of a script
      kKeep,        // the same, with its rows for what the database has around it
      kPrepare,     // PREPARE name AS a statement of ours, out of a script
      kPrepared,    // the database has taken PREPARE, too
      kInDatabase,  // so it has of the prepared statement `text`
      kExecute,     // EXECUTE of such a one
      kForget,      // the database has forgotten the prepared statement `text`; "": all
      kAsk,         // `text`, of our own, to the database
      kAskRow,      // the same; its row is ours
      kGive,        // `text`, to the database; the client hears the answer
      kSet,         // SET sluice.name out of a script
      kBegin,       // a transaction for the script
      kCommit,      // its end
      kRollback,    // its other end
      kSync,        // Sync, where a transaction of ours has to end first
      kSay,         // `text` to the client
      kError,       // `error`, of a script that cannot be read
      kReady,       // a script's end
    };
    Kind kind;
    char type = 0;             // kOwn
    std::string text = {};     // kOwn: the body
    Span span = {};            // of the script: kForward, kRun, kKeep, kPrepare, kExecute, kSet
    Span inside = {};          // kKeep, kPrepare: the statement of ours
    bool transaction = false;  // kForward: begins one
    bool asked = false;        // kOwn, kExecute: the database has been, and `answer_` is for it
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
    std::string OwnText() const;          // the statement of ours
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
  };

  bool blocked() const { return running_ || !steps_.empty() || closed_; }
  size_t Consume(std::string_view bytes);
  Wish WishFor(char type) const;
  void Account(char type);
  // A whole message: false when it is the database's.
  bool Take(char type, std::string_view body);
  bool TakeQuery(std::string_view body);
  bool TakeParse(std::string_view body);
  bool HasInDatabase(std::string_view name) const;
  bool ClosesInDatabase(std::string_view body);
  std::optional<Route> RouteOf(std::string_view sql) const;
  bool IsOwn(char type, std::string_view body) const;
  // What the client has said, and what the back end understands now.
  Result<std::string> Utf8Of(std::string_view text) const;
  Result<std::string> ForServer(std::string_view utf8) const;
  void SeeParameter(std::string_view body);
  void FindEncoding();
  static bool Borrows(const Step& step);
  bool SwitchEncoding(bool borrows);
  void QueueParts(const std::vector<Part>& parts);
  // Steps were queued.
  void Begin();
  void Advance();
  void Perform(const Step& step);
  void PerformOwn(const Step& step);
  static Status NameIsTaken(std::string_view name);
  static Status NoPrepared(std::string_view name);
  static Status CheckText(std::string_view text, const std::vector<uint32_t>& types);
  void ParseOwn(const Step& step);
  void BindOwn(const Step& step);
  void DescribeOwn(std::string_view body);
  void ExecuteOwn(std::string_view body);
  void CloseOwn(std::string_view body);
  void Forward(const Span& span);
  void BeginOwn(const OwnStatement& statement);
  // A cursor's or COPY's rows, to be kept and then given to the database.
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
  // A message of the server; `body` of Z, S and C only. False: the client does not hear of it.
  bool SeeServer(char type, std::string_view body);
  void SeeLent(char type, std::string_view message);
  bool SeeReady(char status);
  bool SeeError();
  bool Answered(std::string_view types);
  void ProcessHeld();
  void Expect(char type, Hears hears) { expected_.push_back({type, hears}); }
  void Reply(std::string_view bytes);

  Host& host_;
  std::map<std::string, std::string> parameters_;
  const catalog::Dialect dialect_;
  bool readable_ = true;  // what a text means here is what it means there
  // The client's; nullopt: UTF-8, or one that is not converted.
  std::optional<ClientEncoding> encoding_;
  std::string backend_encoding_;
  int switched_ = 0;  // so often has the back end been asked for another encoding than the client's
  bool closed_ = false;

  // From the client.
  std::string held_;
  size_t wanted_ = 0;       // of held_, before there is anything to do with it
  size_t client_left_ = 0;  // of a message that is being passed on or dropped
  bool client_drops_ = false;

  // From the back end.
  std::string server_held_;  // the beginning of a message
  size_t server_left_ = 0;
  bool server_drops_ = false;
  std::string said_;  // by a statement of ours, in the middle of a message of the back end
  char status_ = 'I';
  std::deque<Expected> expected_;
  bool copying_in_ = false;

  // A loan of the back end.
  bool lent_ = false;
  std::string borrower_held_;  // the beginning of a message
  size_t borrower_left_ = 0;
  bool borrower_copies_ = false;  // it owes the back end a CopyDone
  int borrowers_queries_ = 0;     // that have not been answered with ReadyForQuery

  // The extended protocol's messages up to Sync.
  bool group_open_ = false;    // something has been passed on since the last Sync
  bool group_dirty_ = false;   // it was executed
  bool group_failed_ = false;  // what follows is skipped
  bool flushed_ = false;

  std::deque<Step> steps_;
  bool running_ = false;    // a statement of ours
  bool in_script_ = false;  // simple protocol
  bool wrapped_ = false;    // the transaction block was begun for a script or a pipeline, by us
  std::string script_;      // what places in errors point into
  int64_t place_ = 0;       // of the statement that runs, in script_
  BoundText bound_;         // its text with the values of its parameters
  std::optional<DescribedTarget> describing_;
  std::optional<Keeping> keeping_;
  int kept_ = 0;  // so many times
  std::optional<AnsweredRow> answer_;
  std::string running_portal_;

  std::map<std::string, Prepared, std::less<>> statements_;
  std::map<std::string, Portal, std::less<>> portals_;
};

}  // namespace sluice::server::pgwire
