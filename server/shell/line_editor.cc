#include "server/shell/line_editor.h"

#include <fmt/core.h>
#include <histedit.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>

#include "server/config/signals.h"
#include "server/config/terminal.h"

namespace sluice::server {
namespace {

constexpr int kHistoryStatements = 1'000;  // as many as shells usually keep

}  // namespace

struct LineEditor::State {
  explicit State(Interrupts& signals) : interrupts(signals) {}
  Interrupts& interrupts;
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string history_file;
  std::string prompt;
  bool interrupted = false;

  static State* Of(EditLine* editor) {
    void* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return static_cast<State*>(state);
  }

  static char* Prompt(EditLine* editor) { return Of(editor)->prompt.data(); }

  // libedit's way of reading a character: 1 read, 0 end of file, -1 error. Waits for the terminal
  // and for Ctrl-C together, because the signal arrives in another thread.
  static int ReadCharacter(EditLine* editor, wchar_t* character) {
    State* state = Of(editor);
    std::mbstate_t shift{};
    for (;;) {
      pollfd ready[] = {{STDIN_FILENO, POLLIN, 0},
                        {state->interrupts.wake_descriptor(), POLLIN, 0}};
      if (poll(ready, 2, -1) < 0) {
        if (errno == EINTR) {
          continue;
        }
        return -1;
      }
      if (ready[1].revents != 0) {
        state->interrupts.ClearWake();
        state->interrupted = true;
        tcflush(STDIN_FILENO, TCIFLUSH);  // the rest of what Ctrl-C was typed against
        return -1;
      }
      char byte = 0;
      const ssize_t size = read(STDIN_FILENO, &byte, 1);
      if (size <= 0) {
        return static_cast<int>(size);
      }
      const size_t length = std::mbrtowc(character, &byte, 1, &shift);
      if (length == static_cast<size_t>(-2)) {
        continue;  // the next byte belongs to the same character
      }
      if (length == static_cast<size_t>(-1)) {
        shift = std::mbstate_t{};  // not a character of this locale: leave it out
        continue;
      }
      return 1;
    }
  }
};

LineEditor::LineEditor(const std::string& history_file, Interrupts& interrupts)
    : state_(std::make_unique<State>(interrupts)) {
  std::setlocale(LC_CTYPE, "");
  State& state = *state_;
  state.history_file = history_file;
  state.history = history_init();
  history(state.history, &state.event, H_SETSIZE, kHistoryStatements);
  history(state.history, &state.event, H_SETUNIQUE, 1);
  if (!history_file.empty()) {
    history(state.history, &state.event, H_LOAD, history_file.c_str());  // none at the first start
  }
  state.editor = el_init("sluice", stdin, stdout, stderr);
  el_set(state.editor, EL_CLIENTDATA, &state);
  el_set(state.editor, EL_PROMPT, &State::Prompt);
  el_set(state.editor, EL_EDITOR, "emacs");
  el_set(state.editor, EL_HIST, &history, state.history);
  el_set(state.editor, EL_GETCFN, &State::ReadCharacter);
  // The terminal would throw away what waits in it at Ctrl-C, ours included: a prompt that follows
  // at once is then never seen.
  for (const char* mode : {"-d", "-x"}) {
    el_set(state.editor, EL_SETTY, mode, "+noflsh", nullptr);
  }
  el_set(state.editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(state.editor, nullptr);  // ~/.editrc
}

LineEditor::~LineEditor() {
  if (!state_->history_file.empty() &&
      history(state_->history, &state_->event, H_SAVE, state_->history_file.c_str()) < 0) {
    Say(fmt::format("the history could not be written to {}\n", state_->history_file));
  }
  el_end(state_->editor);
  history_end(state_->history);
}

LineEditor::Line LineEditor::Read(const std::string& prompt) {
  State& state = *state_;
  state.prompt = prompt;
  state.interrupted = false;
  int length = 0;
  // Before the prompt is shown: a key that comes after it and before el_gets does the same by
  // itself would be the terminal's to treat, and Ctrl-D be lost.
  el_set(state.editor, EL_PREP_TERM, 1);
  const char* text = el_gets(state.editor, &length);
  if (state.interrupted) {
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    return {Kind::kInterrupted, ""};
  }
  if (text == nullptr || length <= 0) {
    std::fputs("\n", stdout);
    return {Kind::kEnd, ""};
  }
  std::string line(text, static_cast<size_t>(length));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) {
    line.pop_back();
  }
  return {Kind::kText, std::move(line)};
}

void LineEditor::Remember(const std::string& statement) {
  history(state_->history, &state_->event, H_ENTER, statement.c_str());
}

}  // namespace sluice::server
