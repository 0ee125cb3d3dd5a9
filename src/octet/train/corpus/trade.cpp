// Topics with goods and money: the blacksmith's shop, selling to it, and orders of a web shop.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "octet/train/corpus/topics.h"

namespace octet::train {
namespace {

using List = std::string_view;

std::vector<Tool> shop_tools() {
  const ToolParameter item = {"item", "Name of the item.", "STRING", {}};
  const ToolParameter price = {"price", "Price in gold coins.", "INTEGER", {}};
  const ToolParameter quantity = {"quantity", "How many pieces.", "INTEGER", {}};
  return {
      {"check_inventory",
       "Look up how many pieces of an item are in the shop and the price.",
       {item},
       {"item"}},
      {"sell_to_player",
       "Sell an item to the player for gold.",
       {item, price, quantity},
       {"item", "price", "quantity"}},
      {"buy_from_player",
       "Buy an item from the player for gold.",
       {item, price},
       {"item", "price"}}};
}

std::vector<Tool> order_tools() {
  const ToolParameter id = {"order_id", "Number of the order.", "STRING", {}};
  const ToolParameter reason = {"reason", "Why.", "STRING", {}};
  return {
      {"get_order", "Look up an order.", {id}, {"order_id"}},
      {"refund_order", "Pay back an order.", {id, reason}, {"order_id", "reason"}}};
}

void open_shop(Dialogue& dialogue, Choices& choices, std::string_view more) {
  const std::string_view smith = choices.of({"Borin", "Marta", "Halvar", "Greta", "Old Tom"});
  const std::string system =
      fmt::format("You are {}, the blacksmith of the village.{}", smith, more);
  dialogue.system(system, choices.happens(0.4) ? shop_tools() : std::vector<Tool>());
}

std::string wish(std::string_view item, Choices& choices) {
  std::string greeting;
  if (choices.happens(0.7)) {
    greeting = fmt::format(
        "{}{} ",
        choices.of(
            {"Hello", "Hi", "Greetings", "Good day", "Good morning", "Good evening", "Hey there"}
        ),
        choices.of({",", "!", "."})
    );
  }
  if (greeting.empty()) {
    return choices.ask(
        {"Do you have a {}?",
         "How much is a {}?",
         "Is there a {} in your shop?",
         "I would like to buy a {}.",
         "I need a {}. What do you have?"},
        item
    );
  }
  return greeting + choices.ask(
                        {"do you have a {}?",
                         "do you sell a {}?",
                         "can I buy a {} here?",
                         "what does a {} cost?",
                         "show me a {}, please.",
                         "I am looking for a {}.",
                         "I need a {}. What do you have?"},
                        item
                    );
}

struct Stock {
  std::string item;
  int64_t count = 0;
  int64_t price = 0;
};

std::string offer(const Stock& stock, Choices& choices) {
  if (stock.count == 0) {
    return choices.answer(
        {"I am sorry, I have no {} left. Come back next week.",
         "The {} is sold out, my friend. Maybe you like something else?"},
        stock.item
    );
  }
  if (stock.count == 1) {
    return choices.answer(
        {"I have one {} left. It costs {} gold coins.", "Only one {} is left, for {} gold coins."},
        stock.item,
        stock.price
    );
  }
  return choices.answer(
      {"Yes, I have {0} {1}s. The price is {2} gold coins for one.",
       "I have {0} {1}s in the shop, each for {2} gold coins.",
       "You are lucky, there are {0} {1}s here. One costs {2} gold coins."},
      stock.count,
      stock.item,
      stock.price
  );
}

void haggle(const Stock& stock, Dialogue& dialogue, Choices& choices) {
  const int64_t bid = choices.number(1, stock.price - 1);
  dialogue.user(choices.ask(
      {"Will you take {} gold for it?",
       "That is too much. I can give you {} gold.",
       "I have only {} gold. Is that enough?"},
      bid
  ));
  dialogue.reply(
      fmt::format(
          "The price is {0} gold and the player offers {1} gold. {1} is less than {0}, so I "
          "refuse.",
          stock.price,
          bid
      ),
      choices.answer(
          {"I am sorry, {0} gold is not enough. The price is {1} gold coins.",
           "{0} gold? No, my work is worth {1} gold coins.",
           "For {0} gold I lose money. It stays at {1} gold coins."},
          bid,
          stock.price
      )
  );
}

void buy(const Stock& stock, Dialogue& dialogue, Choices& choices) {
  constexpr std::array<List, 3> kNumbers = {"one", "two", "three"};
  const int64_t quantity = choices.number(1, std::min<int64_t>(3, stock.count));
  const std::string_view word = kNumbers[static_cast<size_t>(quantity - 1)];
  const int64_t total = quantity * stock.price;
  dialogue.user(choices.ask(
      {"I take {}.",
       "I will buy {}.",
       "Please give me {}.",
       "Good, give me {}.",
       "Deal. I want {}."},
      word
  ));
  dialogue.open_reply(fmt::format(
      "The player wants {} of the {}. {} times {} is {} gold coins.",
      quantity,
      stock.item,
      quantity,
      stock.price,
      total
  ));
  dialogue.say(
      choices.answer({"Here you are. ", "With pleasure. ", "A good choice. ", "Very well. "})
  );
  dialogue.say(choices.answer(
      {"That makes {} gold coins.",
       "You pay {} gold coins.",
       "That will be {} gold coins in total."},
      total
  ));
  dialogue.call(
      "sell_to_player",
      {{"item", stock.item}, {"price", total}, {"quantity", quantity}},
      {{"ok", true}}
  );
  dialogue.say(choices.answer(
      {"Thank you. May the {} serve you well.",
       "It is yours now. Take good care of the {}.",
       "Enjoy the {}, it is light and strong."},
      stock.item
  ));
  dialogue.close_reply();
}

/// The smith pays the same for the same thing.
int64_t fair_price(std::string_view item) {
  int64_t sum = 0;
  for (const char letter : item) {
    sum += letter;
  }
  return 2 + sum % 39;
}

void leave(Dialogue& dialogue, Choices& choices) {
  dialogue.reply(
      "The player is leaving. I say goodbye.",
      choices.answer(
          {"Thank you for coming. Farewell!", "See you soon, friend.", "Goodbye, and safe travels."}
      )
  );
}

}  // namespace

void write_shop(Dialogue& dialogue, Choices& choices) {
  open_shop(dialogue, choices, brief_sentence(choices));
  for (int64_t wishes = choices.happens(0.2) ? 2 : 1; wishes > 0; --wishes) {
    Stock stock;
    stock.item = some_item(choices);
    stock.count = choices.happens(0.15) ? 0 : choices.number(1, 12);
    constexpr std::array<int64_t, 17> kPrices = {
        5, 8, 10, 12, 15, 18, 20, 25, 30, 40, 45, 50, 60, 75, 80, 100, 120};
    stock.price = kPrices[static_cast<size_t>(choices.number(0, std::ssize(kPrices) - 1))];
    dialogue.user(wish(stock.item, choices));
    dialogue.open_reply(
        fmt::format("The player asks about a {}. I should check the inventory first.", stock.item)
    );
    dialogue.say(choices.answer(
        {"One moment, I will look in the back.",
         "Give me a moment, I will look at the shelf.",
         "Let me check the back room for you.",
         "Aye, let me have a look.",
         "Let me see what I have."}
    ));
    dialogue.call(
        "check_inventory", {{"item", stock.item}}, {{"count", stock.count}, {"price", stock.price}}
    );
    dialogue.say(offer(stock, choices));
    dialogue.close_reply();
    if (stock.count == 0) {
      continue;
    }
    if (choices.happens(0.3)) {
      haggle(stock, dialogue, choices);
    }
    if (choices.happens(0.8)) {
      buy(stock, dialogue, choices);
    }
  }
  if (choices.happens(0.7)) {
    dialogue.user(choices.ask(
        {"Thanks! See you.",
         "Good. Farewell.",
         "Thank you, goodbye.",
         "Thank you very much.",
         "All right, I will come back later.",
         "That is a pity. Goodbye."}
    ));
    leave(dialogue, choices);
  }
}

void write_selling(Dialogue& dialogue, Choices& choices) {
  open_shop(dialogue, choices, "");
  const std::string item = some_item(choices);
  const int64_t price = fair_price(item);
  dialogue.user(choices.ask(
      {"Will you buy my {}?", "How much do you pay for a {}?", "I want to sell a {}."}, item
  ));
  dialogue.reply(
      fmt::format("The player wants to sell a {}. A fair price is {} gold coins.", item, price),
      fmt::format("Let me look at it. I can pay you {} gold coins for the {}.", price, item)
  );
  if (choices.happens(0.3)) {
    dialogue.user(choices.ask({"No, I keep it.", "I want more than that.", "That is not enough."}));
    dialogue.reply(
        "The player refuses. I stay friendly.",
        choices.answer(
            {"As you wish. The offer stands if you change your mind.",
             "I am sorry, I cannot pay more."}
        )
    );
    return;
  }
  dialogue.user(choices.ask({"Yes, take it.", "Good, I accept.", "Agreed.", "Deal."}));
  dialogue.open_reply("The player agrees. I buy the item.");
  dialogue.say(choices.answer({"Done.", "Good, I take it.", "Agreed."}));
  dialogue.call("buy_from_player", {{"item", item}, {"price", price}}, {{"ok", true}});
  dialogue.say(fmt::format("You get {} gold coins from me.", price));
  dialogue.close_reply();
}

namespace {

struct Order {
  std::string id;
  std::string_view customer;
  std::string_view item;
  std::string_view status;
};

void refund(const Order& order, std::string_view reason, Dialogue& dialogue, Choices& choices) {
  dialogue.open_reply(fmt::format("The order is {}, so a refund is allowed.", order.status));
  dialogue.say(choices.answer(
      {"I am sorry about that. I start the refund now.", "Of course, I pay back the money."}
  ));
  dialogue.call(
      "refund_order", {{"order_id", order.id}, {"reason", std::string(reason)}}, {{"ok", true}}
  );
  dialogue.say(choices.answer(
      {"The refund for order {} is done.", "You get the money for order {} back in three days."},
      order.id
  ));
  dialogue.close_reply();
}

std::string status_text(const Order& order) {
  if (order.status == "lost") {
    return fmt::format("I am sorry, your {} was lost on the way.", order.item);
  }
  if (order.status == "delivered") {
    return fmt::format("Your {} was delivered yesterday.", order.item);
  }
  return order.status == "shipped" ? fmt::format("Your {} is on the way to you.", order.item)
                                   : fmt::format("Your {} is being packed.", order.item);
}

}  // namespace

void write_order(Dialogue& dialogue, Choices& choices) {
  std::string system = "You are the support agent of a web shop.";
  if (choices.happens(0.5)) {
    system += " Refunds are allowed only for delivered orders.";
  }
  dialogue.system(system, choices.happens(0.5) ? order_tools() : std::vector<Tool>());
  const Order order = {
      fmt::format(
          "{}{}", choices.of({"A", "B", "C", "D", "E", "F", "G", "H"}), choices.number(1000, 9999)
      ),
      some_name(choices),
      choices.of({"lamp", "keyboard", "jacket", "chair", "book", "phone", "watch", "camera"}),
      choices.of({"delivered", "delivered", "lost", "shipped", "packing"})};
  dialogue.user(choices.ask(
      {"Hello, I am {0}. Where is my order {1}?",
       "Hi, this is {0}. What is the status of order {1}?",
       "My name is {0} and I wait for order {1}."},
      order.customer,
      order.id
  ));
  dialogue.open_reply(fmt::format("I need the status of order {}.", order.id));
  dialogue.say(choices.answer(
      {"Hello {}, I check the order right away.", "Hi {}, let me check that for you."},
      order.customer
  ));
  dialogue.call(
      "get_order",
      {{"order_id", order.id}},
      {{"item", std::string(order.item)}, {"status", std::string(order.status)}}
  );
  dialogue.say(status_text(order));
  dialogue.close_reply();
  if (order.status == "lost") {
    dialogue.user(choices.ask({"Please refund it.", "Then I want my money back."}));
    refund(order, "lost", dialogue, choices);
  } else if (order.status == "delivered" && choices.happens(0.6)) {
    const std::string_view reason = choices.of({"broken", "late", "too small", "the wrong color"});
    dialogue.user(choices.ask(
        {"It is {0}. I want my money back.", "The {1} is {0}, please refund it."},
        reason,
        order.item
    ));
    refund(order, reason, dialogue, choices);
  }
  if (choices.happens(0.5)) {
    dialogue.user(choices.ask({"Okay, thanks.", "Thank you."}));
    dialogue.reply(
        "The user says thanks.",
        choices.answer({"You are welcome, {}.", "Have a nice day, {}."}, order.customer)
    );
  }
}

}  // namespace octet::train
