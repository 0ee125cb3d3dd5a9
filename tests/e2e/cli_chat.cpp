// A talk with the shipped pair, on a terminal and through a pipe.

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/cli/program_output.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/terminal_session.h"

namespace octet::test {
namespace {

using Json = nlohmann::ordered_json;
using cli::program_output;
using cli::ProgramLimits;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kFinland = "What is the capital of Finland?";
const std::string kLight = "Turn on the light in the kitchen.";
// The prompt, where libedit is ready for keys.
const std::string kReady = "\x1b[?2004h> ";

std::vector<std::string> chat(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      "chat", "-m", kPairTarget, "-md", kPairDrafter, "-t", "1", "--temp", "0"};
  // Whether drafts pay is the machine's matter; some tests look for the marks of accepted ones.
  arguments.insert(arguments.end(), {"--draft-policy", "fixed"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Json light_tool(const Json& more = Json::object()) {
  Json tool = {
      {"type", "function"},
      {"function",
       {{"name", "set_light"},
        {"description", "Switches a light."},
        {"parameters",
         {{"type", "object"},
          {"properties", {{"room", {{"type", "string"}}}, {"state", {{"type", "string"}}}}},
          {"required", {"room", "state"}}}}}}};
  tool.update(more);
  return Json::array({tool});
}

/// What a talk through a pipe saved.
Json saved_by(const std::vector<std::string>& flags, const std::string& lines) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("talk.json");
  const ProgramResult result = run_octet(chat(flags), lines + "\n/save " + file + "\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  Json json = Json::parse(read_text(file), nullptr, false);
  EXPECT_TRUE(json.is_object()) << result.out << result.err;
  return json.is_object() ? json["messages"] : Json::array();
}

/// The talk's messages, of which there are `count`; ends the session.
Json saved_messages(TerminalSession& session, int count) {
  const TemporaryDirectory directory;
  session.press("/save " + directory.file("talk") + "\r");
  session.wait_for(fmt::format("saved {} messages", count));
  session.wait_for(kReady);
  session.press("\x04");
  EXPECT_EQ(session.exit_code(), 0);
  return Json::parse(read_text(directory.file("talk")))["messages"];
}

TEST(ChatOnATerminal, RepliesAndReusesWhatWasSaid) {
  for (const bool thinking : {true, false}) {
    TerminalSession session(
        chat(thinking ? std::vector<std::string>{} : std::vector<std::string>{"--no-think"})
    );
    std::vector<int> replies;
    std::vector<int> prompts;
    std::vector<int> reused;
    for (const std::string& message : {kFinland, std::string("What is a river?")}) {
      session.wait_for(kReady);
      session.press(message + "\r");
      const std::string text = session.wait_for(" tokens, ");
      replies.push_back(std::stoi(text.substr(text.find_last_not_of("0123456789") + 1)));
      session.wait_for("prompt ");
      const std::string figures = session.wait_for(" reused");  // "214 tokens, 192"
      prompts.push_back(std::stoi(figures));
      reused.push_back(std::stoi(figures.substr(figures.find(", ") + 2)));
    }
    session.wait_for(kReady);
    session.press("\x04");
    EXPECT_EQ(session.exit_code(), 0);
    EXPECT_EQ(reused[0], 0);
    // Thoughts are left out of the next prompt, so what follows them is read anew.
    EXPECT_GE(reused[1], thinking ? prompts[0] - 1 : prompts[0] + replies[0] - 1);
    EXPECT_LT(reused[1], prompts[1]);
    EXPECT_THAT(session.screen(), AllOf(HasSubstr("Helsinki"), HasSubstr("2 replies")));
    EXPECT_EQ(session.screen().find("\x1b[2m\x1b[32mThe user") != std::string::npos, thinking);
  }
}

TEST(ChatOnATerminal, CtrlCStopsTheReplyAndNotTheProgram) {
  TerminalSession session(chat({"--no-think", "--ignore-eos", "-n", "8000", "--marks", "off"}));
  session.wait_for(kReady);
  session.press("Tell me a story about a fox.\r");
  session.wait_for(" the ");
  session.press("\x03");
  session.wait_for("; cancelled");
  session.wait_for(kReady);
  session.press("/undo\r");
  session.wait_for("forgotten: Tell me a story");
  session.wait_for(kReady);
  session.press(kFinland + "\r");
  session.wait_for("Helsinki");
  session.press("\x03");
  session.wait_for("; cancelled");
  session.wait_for(kReady);
  session.press("/quit\r");
  EXPECT_EQ(session.exit_code(), 0);
}

TEST(ChatOnATerminal, CtrlCAtThePromptClearsTheLineAndLeavesTheSecondTime) {
  TerminalSession session(chat({"--no-think"}));
  session.wait_for(kReady);
  session.press("half a line");
  session.wait_for("half a line");
  session.press("\x03");
  session.wait_for("leaves)");
  session.wait_for(kReady);
  session.press(kFinland + "\r");
  session.wait_for("Helsinki");
  session.wait_for(kReady);
  session.press("\x03");  // the first again: something was said between
  session.wait_for("leaves)");
  session.wait_for(kReady);
  session.press("typed");
  session.wait_for("typed");
  session.press("\x03");
  session.wait_for("leaves)");
  session.wait_for(kReady);
  session.press("\x03");
  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_THAT(session.screen(), HasSubstr("8 tokens"));
}

TEST(ChatOnATerminal, MessagesOfSeveralLinesAreTypedPastedAndRecalled) {
  TerminalSession session(chat({"--no-think", "-n", "4"}));
  const auto say = [&](const std::string& keys) {
    session.wait_for(kReady);
    session.press(keys);
    session.wait_for("reused");
  };
  session.wait_for(kReady);
  session.press("first line\\\r");
  session.wait_for("\x1b[?2004h| ");
  session.press("second line\r");
  session.wait_for("reused");
  say("one\x1b\rtwo\r");
  say("\x1b[200~pasted \xC3\xA4\rlines\x1b[201~ and more\r");
  say("\x1b[A\r");  // the pasted one again
  say("\xE2\x82\xACuro\x01x\x05!\r");
  session.wait_for(kReady);
  const Json messages = saved_messages(session, 10);
  std::vector<std::string> typed;
  for (const Json& message : messages) {
    if (message["role"] == "user") {
      typed.push_back(message["content"].get<std::string>());
    }
  }
  EXPECT_EQ(
      typed,
      (std::vector<std::string>{
          "first line\nsecond line",
          "one\ntwo",
          "pasted \xC3\xA4\nlines and more",
          "pasted \xC3\xA4\nlines and more",
          "x\xE2\x82\xACuro!"})
  );
}

TEST(ChatOnATerminal, LinesAreKeptForTheNextTalk) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("lines");
  for (const char* keys : {"/temp 0\r", "\x1b[A\r"}) {
    TerminalSession session(chat({"--history", file, "-q"}));
    session.wait_for(kReady);
    session.press(keys);
    session.wait_for("/temp 0");
    session.wait_for(kReady);
    session.press("\x04");
    EXPECT_EQ(session.exit_code(), 0);
  }
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
}

TEST(ChatOnATerminal, NoColorIsHonoured) {
  TerminalSession session(chat({"--no-think"}), false);
  session.wait_for(kReady);
  session.press(kFinland + "\r");
  session.wait_for("reused");
  session.wait_for(kReady);
  session.press("\x04");
  EXPECT_EQ(session.exit_code(), 0);
  EXPECT_THAT(session.screen(), Not(HasSubstr("\x1b[2m")));
  EXPECT_THAT(session.screen(), Not(HasSubstr("\x1b[32m")));
}

TEST(ChatOnATerminal, APersonAnswersACallOrTakesTheMessageBack) {
  const TemporaryDirectory directory;
  const std::string tools = directory.write("tools.json", light_tool().dump());
  TerminalSession session(chat({"--no-think", "--tools", tools, "--marks", "off"}));
  session.wait_for(kReady);
  session.press(kLight + "\r");
  session.wait_for("call set_light {\"room\":\"kitchen\"");
  session.wait_for("answer of set_light> ");
  session.press("\x03");
  session.wait_for("the message is forgotten");
  session.wait_for(kReady);
  session.press(kLight + "\r");
  session.wait_for("answer of set_light> ");
  session.press("done\r");
  session.wait_for("reused");
  session.wait_for(kReady);
  const Json messages = saved_messages(session, 4);
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[2]["role"], "tool");
  EXPECT_EQ(messages[2]["content"], "done");
  EXPECT_EQ(messages[2]["tool_call_id"], messages[1]["tool_calls"][0]["id"]);
  EXPECT_NE(messages[3]["content"], "");
}

TEST(Chat, RemembersResetsAndSumsUp) {
  const ProgramResult result = run_octet(
      chat({"--no-think"}),
      kFinland + "\n/nonsense\nWhat is a river?\n/reset\n" + kFinland + "\n/quit\nunread\n"
  );
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(
      result.out, AllOf(HasSubstr("Helsinki"), HasSubstr("A river is"), Not(HasSubstr("unread")))
  );
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("3 replies"), HasSubstr("there is no /nonsense"), HasSubstr("by position"))
  );
}

TEST(Chat, AReplyIsTheSameAsThatOfRun) {
  const std::vector<std::string> flags = {"--temp", "1", "--seed", "5", "-n", "60", "-q"};
  std::vector<std::string> run = flags;
  run.insert(run.end(), {"-p", "Tell me a story about a fox."});
  const std::string alone = run_with_pair("run", run).out;
  const ProgramResult talk =
      run_with_pair("chat", flags, "What is a river?\n/reset\nTell me a story about a fox.\n");
  EXPECT_THAT(talk.out, HasSubstr("> Tell me a story about a fox.\n" + alone));
}

TEST(Chat, UndoRetrySystemAndLinesThatBeginWithASlash) {
  const Json messages = saved_by(
      {"--no-think", "--system", "You are brief."},
      kFinland + "\nWhat is a river?\n/undo\n/retry\n/system You are a robot.\n//help me"
  );
  ASSERT_EQ(messages.size(), 5U);
  EXPECT_EQ(messages[0]["content"], "You are a robot.");
  EXPECT_EQ(messages[1]["content"], kFinland);
  EXPECT_EQ(messages[3]["content"], "/help me");
  EXPECT_EQ(saved_by({"--system", "You are brief."}, "/system off").size(), 0U);
}

TEST(Chat, ThoughtsAreShownFoldedHiddenAndRecalled) {
  const std::string shown = run_octet(chat({"-q"}), kFinland + "\n").out;
  EXPECT_THAT(shown, HasSubstr("The user asks"));
  const std::string folded =
      run_octet(
          chat({"-q"}), "/fold on\n" + kFinland + "\n/thought\n/think off\n" + kFinland + "\n"
      )
          .out;
  EXPECT_THAT(folded, HasSubstr("(thought for "));
  const size_t recalled = folded.find("> /thought\n");
  ASSERT_NE(recalled, std::string::npos);
  EXPECT_EQ(folded.substr(0, recalled).find("The user asks"), std::string::npos);
  EXPECT_NE(folded.find("The user asks", recalled), std::string::npos);
  EXPECT_EQ(folded.find("(thought for", recalled), std::string::npos);  // /think off
  EXPECT_THAT(
      run_octet(chat({"-q", "--fold-thinking"}), kFinland + "\n").out, HasSubstr("(thought for ")
  );
  const std::string hidden = run_octet(chat({"-q", "--hide-thinking"}), kFinland + "\n").out;
  EXPECT_THAT(hidden, AllOf(Not(HasSubstr("thought")), Not(HasSubstr("user asks"))));
}

TEST(Chat, AThinkingBudgetIsALimit) {
  const Json messages = saved_by({}, "/think 3\n" + kFinland);
  ASSERT_EQ(messages.size(), 2U);
  const std::string thought = messages[1].value("reasoning_content", "");
  EXPECT_LT(thought.size(), std::string("The user asks for the capital").size()) << thought;
  EXPECT_NE(messages[1]["content"], "");
}

TEST(Chat, DraftingIsTurnedOffAndOnAndChangesNoText) {
  const std::string talk = kFinland + "\nWhat is a river?\n";
  const ProgramResult drafted = run_octet(chat({"--no-think"}), talk);
  const ProgramResult plain = run_octet(chat({"--no-think"}), "/draft 0\n" + talk);
  EXPECT_EQ("> /draft 0\n" + drafted.out, plain.out);
  EXPECT_THAT(plain.err, HasSubstr("off: turned off"));
  EXPECT_THAT(
      run_octet(chat(), "/draft 0\n/draft on\n" + talk).err, HasSubstr("mean acceptance length")
  );
  for (const char* wrong :
       {"/draft 99", "/draft", "/temp -1", "/think 0", "/fold", "/load", "/undo"}) {
    EXPECT_THAT(run_octet(chat(), std::string(wrong) + "\n").err, HasSubstr("octet: ")) << wrong;
  }
}

TEST(Chat, SavedTalksGoOnWhereTheyWere) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("talk");
  const std::string whole =
      run_octet(chat({"--no-think", "-q"}), kFinland + "\nAnd of Norway?\n").out;
  run_octet(chat({"--no-think"}), kFinland + "\n/save " + file + "\n");
  const std::string rest =
      run_octet(chat({"--no-think", "-q"}), "/load " + file + "\nAnd of Norway?\n").out;
  EXPECT_EQ(
      whole.substr(whole.find("> And of Norway?")), rest.substr(rest.find("> And of Norway?"))
  );
  for (const char* wrong :
       {"{", "[7]", R"({"messages": {}})", R"([{"role": "ghost", "content": "x"}])"}) {
    const ProgramResult result = run_octet(
        chat({"--no-think", "-q"}),
        kFinland + "\n/load " + directory.write("wrong", wrong) + "\n/undo\n"
    );
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, AllOf(HasSubstr("octet: "), HasSubstr("forgotten: " + kFinland)))
        << wrong;
  }
}

TEST(Chat, MessagesInPartsAreTakenBackWithTheirText) {
  const TemporaryDirectory directory;
  const std::string parts = directory.write(
      "talk", R"([{"role": "user", "content": [{"type": "text", "text": "In parts."}]}])"
  );
  const ProgramResult result =
      run_octet(chat({"--no-think", "-q"}), "/load " + parts + "\n/undo\n/undo\n");
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("forgotten: In parts."), HasSubstr("there is no message to forget"))
  );
}

TEST(Chat, AMessageThatDoesNotFitIsForgotten) {
  std::string words;
  for (int i = 0; i < 3000; ++i) {
    words += "river ";
  }
  const ProgramResult result =
      run_octet(chat({"--no-think", "-c", "512"}), words + "\n" + kFinland + "\n");
  EXPECT_THAT(result.err, AllOf(HasSubstr("the context 512"), HasSubstr("1 ")));
  EXPECT_THAT(result.out, HasSubstr("Helsinki"));
}

TEST(ChatTools, AnswersComeFromTheFileAFileAndAProgram) {
  const TemporaryDirectory directory;
  directory.write("answer.txt", "from a file\n");
  struct Case {
    Json way;
    std::string answer;
  };
  const std::vector<Case> cases = {
      {{{"answer", "fixed"}}, "fixed"},
      {{{"answer", {{"on", true}}}}, "{\"on\":true}"},
      {{{"answer_file", "answer.txt"}}, "from a file"},
      {{{"answer_command", {"sed", "s/^/got /"}}}, "got {\"room\":\"kitchen\",\"state\":\"on\"}"},
  };
  for (const Case& one : cases) {
    const std::string tools = directory.write("tools.json", light_tool(one.way).dump());
    const Json messages = saved_by({"--no-think", "--tools", tools}, kLight);
    ASSERT_EQ(messages.size(), 4U) << one.way;
    EXPECT_EQ(messages[1]["tool_calls"][0]["function"]["name"], "set_light");
    EXPECT_EQ(
        messages[1]["tool_calls"][0]["function"]["arguments"],
        "{\"room\":\"kitchen\",\"state\":\"on\"}"
    );
    EXPECT_EQ(messages[2]["content"], one.answer);
    EXPECT_EQ(messages[3]["role"], "assistant");
  }
}

TEST(ChatTools, WithoutAStubTheNextLineAnswers) {
  const TemporaryDirectory directory;
  const std::string tools = directory.write("tools.json", Json({{"tools", light_tool()}}).dump());
  const Json messages = saved_by({"--no-think", "--tools", tools}, kLight + "\nit is on");
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[2]["content"], "it is on");
}

TEST(ChatTools, AStrictToolIsHeldToItsSchema) {
  const TemporaryDirectory directory;
  Json tools = light_tool({{"answer", "done"}});
  tools[0]["function"]["strict"] = true;
  tools[0]["function"]["parameters"]["properties"]["state"]["enum"] = {"bright", "dark"};
  const Json messages =
      saved_by({"--no-think", "--tools", directory.write("tools.json", tools.dump())}, kLight);
  ASSERT_GE(messages.size(), 2U);
  ASSERT_TRUE(messages[1].contains("tool_calls")) << messages;
  const Json arguments =
      Json::parse(messages[1]["tool_calls"][0]["function"]["arguments"].get<std::string>());
  EXPECT_TRUE(arguments["state"] == "bright" || arguments["state"] == "dark") << arguments;
}

TEST(ChatTools, AProgramThatFailsTakesTheMessageBack) {
  const TemporaryDirectory directory;
  for (const Json& command :
       {Json{"/nonexistent/program"},
        Json{"false"},
        Json{"sh", "-c", "kill -9 $$"},
        Json{"sh", "-c", "yes | head -c 3000000"}}) {
    const std::string tools =
        directory.write("tools.json", light_tool({{"answer_command", command}}).dump());
    const ProgramResult result = run_octet(
        chat({"--no-think", "--tools", tools}), fmt::format("{}\n/undo\n{}\n", kLight, kFinland)
    );
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(
        result.err,
        AllOf(
            HasSubstr("octet: " + command[0].get<std::string>()),
            HasSubstr("there is no message to forget")
        )
    );
    EXPECT_THAT(result.out, HasSubstr("Helsinki"));
  }
}

TEST(ChatTools, AProgramMustEndInTimeToo) {
  const ProgramLimits limits = {.timeout_ms = 300};
  for (const char* script : {"sleep 100", "exec >&-; sleep 100", "echo half; sleep 100"}) {
    try {
      program_output({"sh", "-c", script}, "", limits);
      ADD_FAILURE() << script;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("within 300 ms")) << script;
    }
  }
  EXPECT_EQ(program_output({"sh", "-c", "exec 1>&1; cat"}, "said", {.timeout_ms = 60'000}), "said");
}

TEST(ChatTools, FilesThatAreNoneAreRefusedByPlace) {
  const TemporaryDirectory directory;
  struct Case {
    std::string text;
    std::string complaint;
  };
  const std::vector<Case> cases = {
      {"{", "is not JSON"},
      {"[]", "expected an array of tools"},
      {R"([{"name": "x"}])", "tool 1 is not"},
      {R"([{"type": "function", "function": {"name": ""}}])", "tool 1 is not"},
      {R"([{"type": "function", "function": {"name": "x"}, "reply": 1}])", "has 'reply'"},
      {R"([{"function": {"name": "x"}, "answer": 1, "answer_file": "y"}])", "more than one way"},
      {R"([{"function": {"name": "x"}, "answer_command": "ls"}])", "has 'answer_command'"},
  };
  for (const Case& one : cases) {
    const ProgramResult result =
        run_octet(chat({"--tools", directory.write("tools.json", one.text)}));
    EXPECT_EQ(result.exit_code, 2) << one.text;
    EXPECT_THAT(result.err, HasSubstr(one.complaint)) << one.text;
  }
}

}  // namespace
}  // namespace octet::test
