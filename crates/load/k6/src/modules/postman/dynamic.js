// Dynamic variables: {{$guid}}, {{$timestamp}}, {{$randomInt}} and others.
const whole = (from, to) => from + Math.floor(Math.random() * (to - from + 1));
const one = (list) => list[whole(0, list.length - 1)];
const words = (text) => text.split(' ');
const several = (count, make) => Array.from({ length: count }, make).join(' ');
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const hex = '0123456789abcdef';
const chars = (count, set) => Array.from({ length: count }, () => one(set)).join('');

const FIRST = words('Ada Alan Barbara Claude Dennis Edsger Frances Grace Hedy Ivan Jean Katherine Leslie Margaret Niklaus Radia');
const LAST = words('Lovelace Turing Liskov Shannon Ritchie Dijkstra Allen Hopper Lamarr Sutherland Sammet Johnson Lamport Hamilton Wirth Perlman');
const WORDS = words('tea cup river stone light cloud paper garden window bridge copper forest winter morning silver harbour');
const LOREM = words('lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua');
const COLORS = words('red green blue yellow orange purple black white grey cyan magenta olive teal violet');
const CITIES = words('Lisbon Oslo Vienna Prague Dublin Athens Nairobi Quito Osaka Perth Toronto Lima');
const COUNTRIES = words('Portugal Norway Austria Ireland Greece Kenya Ecuador Japan Australia Canada Peru');
const CODES = words('PT NO AT IE GR KE EC JP AU CA PE');
const CURRENCIES = words('EUR USD GBP JPY CHF SEK NOK CAD AUD');
const JOBS = words('Engineer Analyst Designer Manager Architect Consultant Technician Planner');
const STREETS = words('Mill Church Station Park School Bridge Market Garden');
const DOMAINS = words('example.com example.net example.org');
const DAYS = words('Monday Tuesday Wednesday Thursday Friday Saturday Sunday');
const MONTHS = words('January February March April May June July August September October November December');
const PRODUCTS = words('Chair Table Lamp Shoes Hat Keyboard Mouse Bike Ball Towels');
const MATERIALS = words('Wooden Steel Cotton Granite Rubber Plastic');
const ADJECTIVES = words('Small Ergonomic Rustic Sleek Practical Handmade');

const uuid = () => {
  const text = chars(32, hex);
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-4${text.slice(13, 16)}-${one('89ab')}${text.slice(17, 20)}-${text.slice(20)}`;
};
const email = () => `${one(FIRST)}${whole(1, 99)}@${one(DOMAINS)}`.toLowerCase();
const sentence = () => {
  const text = several(whole(4, 9), () => one(LOREM));
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
};
const DAY_MS = 86400000;
const within = (fromDays, toDays) => new Date(Date.now() + whole(fromDays * DAY_MS, toDays * DAY_MS)).toString();

const GENERATORS = {
  guid: uuid,
  timestamp: () => Math.round(Date.now() / 1000),
  isoTimestamp: () => new Date().toISOString(),
  randomUUID: uuid,
  randomInt: () => whole(0, 1000),
  randomBoolean: () => Math.random() < 0.5,
  randomAlphaNumeric: () => chars(1, 'abcdefghijklmnopqrstuvwxyz0123456789'),
  randomHexadecimal: () => `0x${chars(1, hex)}`,
  randomHexColor: () => `#${chars(6, hex)}`,
  randomColor: () => one(COLORS),
  randomAbbreviation: () => one(words('HTTP TCP SQL XML JSON RAM USB PNG')),
  randomIP: () => `${whole(1, 223)}.${whole(0, 255)}.${whole(0, 255)}.${whole(1, 254)}`,
  randomIPV6: () => Array.from({ length: 8 }, () => chars(4, hex)).join(':'),
  randomMACAddress: () => Array.from({ length: 6 }, () => chars(2, hex)).join(':'),
  randomPassword: () => chars(15, letters),
  randomLocale: () => one(words('en de fr es pt ja it nl')),
  randomUserAgent: () => `Mozilla/5.0 (X11; Linux x86_64; rv:${whole(90, 130)}.0) Gecko/20100101`,
  randomProtocol: () => one(['http', 'https']),
  randomSemver: () => `${whole(0, 9)}.${whole(0, 9)}.${whole(0, 9)}`,
  randomFirstName: () => one(FIRST),
  randomLastName: () => one(LAST),
  randomFullName: () => `${one(FIRST)} ${one(LAST)}`,
  randomNamePrefix: () => one(words('Mr. Mrs. Ms. Dr.')),
  randomNameSuffix: () => one(words('Jr. Sr. II III PhD MD')),
  randomJobTitle: () => `Senior ${one(JOBS)}`,
  randomJobType: () => one(JOBS),
  randomPhoneNumber: () => `${whole(200, 999)}-${whole(200, 999)}-${whole(1000, 9999)}`,
  randomPhoneNumberExt: () => `${whole(1, 99)}-${whole(200, 999)}-${whole(200, 999)}-${whole(1000, 9999)}`,
  randomCity: () => one(CITIES),
  randomStreetName: () => `${one(STREETS)} Street`,
  randomStreetAddress: () => `${whole(1, 999)} ${one(STREETS)} Street`,
  randomCountry: () => one(COUNTRIES),
  randomCountryCode: () => one(CODES),
  randomLatitude: () => (Math.random() * 180 - 90).toFixed(4),
  randomLongitude: () => (Math.random() * 360 - 180).toFixed(4),
  randomBankAccount: () => chars(8, '0123456789'),
  randomCreditCardMask: () => chars(4, '0123456789'),
  randomPrice: () => `${whole(0, 999)}.${chars(2, '0123456789')}`,
  randomCurrencyCode: () => one(CURRENCIES),
  randomDateFuture: () => within(1, 365),
  randomDatePast: () => within(-365, -1),
  randomDateRecent: () => within(-1, 0),
  randomWeekday: () => one(DAYS),
  randomMonth: () => one(MONTHS),
  randomDomainName: () => one(DOMAINS),
  randomDomainSuffix: () => one(words('com net org info')),
  randomDomainWord: () => one(WORDS),
  randomEmail: email,
  randomExampleEmail: email,
  randomUserName: () => `${one(FIRST)}${whole(1, 99)}`,
  randomUrl: () => `https://${one(DOMAINS)}`,
  randomImageUrl: () => `https://${one(DOMAINS)}/640/480`,
  randomFileName: () => `${one(WORDS)}_${one(WORDS)}.txt`,
  randomFileExt: () => one(words('txt json csv png pdf')),
  randomCompanyName: () => `${one(LAST)} and ${one(LAST)}`,
  randomDepartment: () => one(words('Books Garden Music Tools Toys Grocery')),
  randomProduct: () => one(PRODUCTS),
  randomProductAdjective: () => one(ADJECTIVES),
  randomProductMaterial: () => one(MATERIALS),
  randomProductName: () => `${one(ADJECTIVES)} ${one(MATERIALS)} ${one(PRODUCTS)}`,
  randomNoun: () => one(WORDS),
  randomVerb: () => one(words('read write open close send load move copy')),
  randomAdjective: () => one(words('small large quiet quick bright heavy')),
  randomWord: () => one(WORDS),
  randomWords: () => several(3, () => one(WORDS)),
  randomPhrase: sentence,
  randomLoremWord: () => one(LOREM),
  randomLoremWords: () => several(3, () => one(LOREM)),
  randomLoremSentence: sentence,
  randomLoremSentences: () => several(whole(2, 6), sentence),
  randomLoremParagraph: () => several(3, sentence),
  randomLoremParagraphs: () => Array.from({ length: 3 }, () => several(3, sentence)).join('\n\n'),
  randomLoremText: () => several(3, sentence),
  randomLoremSlug: () => Array.from({ length: 3 }, () => one(LOREM)).join('-'),
  randomLoremLines: () => Array.from({ length: 3 }, sentence).join('\n'),
};

// Value of a dynamic variable by its name with the dollar sign; undefined if there is none of this name.
export function dynamic(name) {
  if (!name.startsWith('$')) return undefined;
  const own = name.slice(1);
  return Object.hasOwn(GENERATORS, own) ? GENERATORS[own]() : undefined;
}

export { uuid };
