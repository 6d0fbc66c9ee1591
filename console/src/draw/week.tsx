/** The hours of a week in which a schedule fires, on the clock of its zone: a row for each weekday. */

import type { JSX } from "preact";
import { local } from "../lib/time";
import { counted } from "../lib/words";
import { useWidth } from "../ui/hooks";

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LEFT = 32;
const TOP = 16;
const ROW = 14;
const HOURS = 24;

/** The first fire time (ms) of each hour of a week, by weekday and hour: `Mon 9`. Pure. */
export function byHour(fires: readonly number[], zone: string): Map<string, string> {
  const shown = fires.map((at) => local(at, zone));
  return new Map(shown.map(({ weekday, time }) => [`${weekday} ${Number(time.slice(0, 2))}`, time.slice(0, 5)]));
}

export function Week({ fires, zone }: { fires: readonly number[]; zone: string }): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>(360);
  const found = byHour(fires, zone);
  const column = (width - LEFT) / HOURS;
  return (
    <div ref={box}>
      <svg
        class="draw"
        viewBox={`0 0 ${width} ${TOP + DAYS.length * ROW}`}
        height={TOP + DAYS.length * ROW}
        role="img"
        aria-label={`Seven days in ${zone}: it fires in ${counted(found.size, "hour")} of ${DAYS.length * HOURS}`}
      >
        {[0, 6, 12, 18].map((hour) => (
          <text key={hour} x={LEFT + hour * column} y={TOP - 4}>
            {String(hour).padStart(2, "0")}
          </text>
        ))}
        {DAYS.map((day, row) => (
          <g key={day}>
            <text x="0" y={TOP + row * ROW + 10}>
              {day}
            </text>
            {Array.from({ length: HOURS }, (_, hour) => {
              const first = found.get(`${day} ${hour}`);
              return (
                <rect
                  key={hour}
                  x={LEFT + hour * column}
                  y={TOP + row * ROW}
                  width={column - 2}
                  height={ROW - 2}
                  rx="2"
                  class={first ? "f-accent" : "f-track"}
                >
                  {first ? <title>{`${day}, first at ${first}`}</title> : null}
                </rect>
              );
            })}
          </g>
        ))}
      </svg>
    </div>
  );
}
